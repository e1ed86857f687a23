// Messages that wait for the agent's next step: shown, editable, removable (harness-loop 3.7, 10.2).
import { type FormEvent, type KeyboardEvent, useState } from "react";
import { Button, IconButton } from "../../ui/components";
import { useSignal } from "../../ui/signal";
import { announce } from "../model/announcer";
import type { Conversation } from "../model/conversation";
import { type QueuedMessage, textOfMessage } from "../model/types";

export function Queue({ conversation }: { conversation: Conversation }) {
  const queued = useSignal(conversation.turn)?.queued ?? [];
  if (queued.length === 0) return null;
  return (
    <section className="queue" aria-label="Waiting for the next step">
      <h2>Waiting for the next step</h2>
      <ul>
        {queued.map((message) => (
          <QueuedRow key={message.entry_id} queued={message} conversation={conversation} />
        ))}
      </ul>
    </section>
  );
}

function QueuedRow({ queued, conversation }: { queued: QueuedMessage; conversation: Conversation }) {
  const text = textOfMessage(queued.message);
  const [draft, setDraft] = useState<string | null>(null);
  const save = async (event: { preventDefault(): void }) => {
    event.preventDefault();
    const changed = draft?.trim() ?? "";
    if (changed === "") return;
    setDraft(null);
    if (changed !== text && !(await conversation.editQueued(queued.entry_id, changed)))
      announce("The agent had read the message already.");
  };
  if (draft === null) {
    return (
      <li>
        <p>{text}</p>
        <IconButton icon="pencil" label={`Edit “${text}”`} onClick={() => setDraft(text)} />
        <IconButton icon="close" label={`Remove “${text}”`} onClick={() => void conversation.unqueue(queued.entry_id)} />
      </li>
    );
  }
  return (
    <li>
      <form onSubmit={(event: FormEvent) => void save(event)}>
        <textarea
          autoFocus
          rows={2}
          aria-label="Message that waits"
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={(event: KeyboardEvent) => {
            if (event.key === "Escape") {
              event.preventDefault();
              setDraft(null);
            } else if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) void save(event);
          }}
        />
        <Button kind="primary" type="submit" disabled={draft.trim() === ""}>
          Save
        </Button>
        <Button kind="quiet" onClick={() => setDraft(null)}>
          Cancel
        </Button>
      </form>
    </li>
  );
}
