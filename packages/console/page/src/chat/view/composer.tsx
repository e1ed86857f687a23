// The field for the next message, with what it is sent with: model and functions.
import { type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button, IconButton } from "../../ui/components";
import { useSignal } from "../../ui/signal";
import type { Choices } from "../choices";
import { useChat } from "../context";
import type { Choice } from "../model/conversation";
import { draftOf, keepDraft } from "../model/drafts";
import { useConnection } from "./connection";
import { FunctionsDialog } from "./functions";
import { ModelPicker } from "./models";

interface ComposerProps {
  sessionId: string | null;
  choices: Choices;
  live: boolean;
  stopping: boolean;
  onSend(text: string, choice: Choice): void;
  onStop(): void;
}

export function Composer({ sessionId, choices, live, stopping, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState(() => draftOf(sessionId));
  const [functions, setFunctions] = useState(false);
  const field = useAutoGrow(text);
  const connected = useConnection().kind === "open";
  const [wanted, setWanted] = useState(false);
  const change = (next: string) => {
    setText(next);
    setWanted(false);
    keepDraft(sessionId, next);
  };
  const send = () => {
    const words = text.trim();
    if (words === "") return;
    if (!connected || choices.choice === null) {
      setWanted(true);
      return;
    }
    change("");
    onSend(words, choices.choice);
  };
  useEffect(() => {
    if (wanted) send();
  }, [wanted, connected, choices.choice === null]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      send();
    }
  };
  const changes = choices.change.allow.length + choices.change.deny.length;
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label className="visually-hidden" htmlFor="message">
        Message
      </label>
      <textarea
        id="message"
        ref={field}
        rows={1}
        value={text}
        placeholder={live ? "Steer the agent: it reads this before its next step" : "Message the agent"}
        aria-describedby="message-help"
        onChange={(event) => change(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="composer-row">
        <ModelPicker choices={choices} />
        <Button kind="quiet" icon="shield" className="functions-button" onClick={() => setFunctions(true)}>
          <span className="label">Functions</span>
          {changes > 0 && <span className="count" aria-label={`, ${changes} changed`}>{changes}</span>}
        </Button>
        <span className="spacer" />
        {live && (
          <Button className="stop" icon="stop" onClick={onStop} disabled={stopping}>
            {stopping ? "Stopping" : "Stop"}
          </Button>
        )}
        <IconButton icon="send" label="Send" kind="primary" type="submit" disabled={text.trim() === "" || wanted} />
      </div>
      <p id="message-help" className="visually-hidden">
        Enter sends, Shift and Enter begins a new line, Escape stops the agent.
      </p>
      {wanted && choices.model !== null && <p className="wanted" role="status">It is sent as soon as the stack answers.</p>}
      <NoModel choices={choices} />
      {functions && <FunctionsDialog choices={choices} onClose={() => setFunctions(false)} />}
    </form>
  );
}

function NoModel({ choices }: { choices: Choices }) {
  const { models } = useChat();
  const { loaded, failed } = useSignal(models.catalogue);
  if (choices.model !== null || !(loaded || failed)) return null;
  return (
    <p className="no-model" role="alert">
      No provider lists a model. If one is set, its server does not answer or refuses the key: <code>iii-stack doctor</code> tells
      which, and the list is read again by itself. If none is, set <code>OPENAI_API_KEY</code> or <code>ANTHROPIC_API_KEY</code> and start
      the stack again.
    </p>
  );
}

function useAutoGrow(text: string) {
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const area = field.current;
    if (area === null) return;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  }, [text]);
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) field.current?.focus();
  }, []);
  return field;
}
