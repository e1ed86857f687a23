// The keys of the page, and the list of them.
import { useEffect } from "react";
import { Dialog } from "../../ui/components";
import { openSession } from "../route";

const SHORTCUTS: [keys: string[], what: string][] = [
  [["Enter"], "Send the message"],
  [["Shift", "Enter"], "Begin a new line"],
  [["Esc"], "Stop the agent, close what is open"],
  [["/"], "Go to the message field"],
  [["Alt", "N"], "New conversation"],
  [["Alt", "↑ ↓"], "Previous or next conversation"],
  [["?"], "Show these shortcuts"],
];

export function ShortcutsDialog({ onClose }: { onClose(): void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="shortcuts">
        {SHORTCUTS.map(([keys, what]) => (
          <div key={what}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

export function useShortcuts({ onHelp }: { onHelp(): void }): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || document.querySelector("dialog[open]") !== null) return;
      if (event.altKey) {
        if (event.code === "KeyN") act(event, () => openSession(null));
        else if (event.key === "ArrowUp") act(event, () => step(-1));
        else if (event.key === "ArrowDown") act(event, () => step(1));
      } else if (!isTyping(event.target)) {
        if (event.key === "?") act(event, onHelp);
        else if (event.key === "/") act(event, () => document.getElementById("message")?.focus());
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [onHelp]);
}

function act(event: KeyboardEvent, action: () => void): void {
  event.preventDefault();
  action();
}

function step(by: number): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("a.session")];
  const at = links.findIndex((link) => link.getAttribute("aria-current") === "page");
  links[at === -1 ? 0 : at + by]?.click();
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
