// The head of a conversation: its title, which can be changed, and what the agent does right now.
import { type FormEvent, useEffect, useRef, useState } from "react";
import { Button, Dialog, IconButton } from "../../ui/components";
import { Signal, useSignal } from "../../ui/signal";
import type { Conversation } from "../model/conversation";
import { isLive, type SessionMeta, type StatusReport } from "../model/types";
import type { Menu } from "./menu";

const NO_META = new Signal<SessionMeta | null>(null);
const NO_TURN = new Signal<StatusReport | null>(null);

export function Header({ conversation, menu }: { conversation: Conversation | null; menu: Menu }) {
  const meta = useSignal(conversation?.meta ?? NO_META);
  const turn = useSignal(conversation?.turn ?? NO_TURN);
  const [renaming, setRenaming] = useState(false);
  const title = conversation === null ? "New conversation" : meta?.title || "Conversation";
  useEffect(() => {
    document.title = `${title} · iii`;
  }, [title]);
  return (
    <header className="head">
      <span className="only-narrow">
        <IconButton icon="menu" label="Conversations" aria-expanded={menu.open} onClick={menu.show} />
      </span>
      <h1 title={title}>{title}</h1>
      {meta !== null && <IconButton icon="pencil" label="Rename" onClick={() => setRenaming(true)} />}
      {isLive(turn) && <Activity reason={meta?.status_reason ?? "working"} />}
      {renaming && conversation !== null && (
        <RenameDialog
          title={meta?.title ?? ""}
          onClose={() => setRenaming(false)}
          onRename={(next) => {
            setRenaming(false);
            void conversation.rename(next);
          }}
        />
      )}
    </header>
  );
}

function Activity({ reason }: { reason: string }) {
  return (
    <span className="activity">
      <span className="dot dot-working" aria-hidden="true" />
      {reason}
    </span>
  );
}

function RenameDialog({ title, onClose, onRename }: { title: string; onClose(): void; onRename(title: string): void }) {
  const [text, setText] = useState(title);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onRename(text.trim());
  };
  return (
    <Dialog title="Rename the conversation" onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <label>
          Title
          <input ref={field} value={text} onChange={(event) => setText(event.target.value)} />
        </label>
        <div className="form-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={text.trim() === ""}>
            Rename
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
