// What people said: as stored, and while it is on its way.
import { memo } from "react";
import { Button, Spinner } from "../../ui/components";
import type { Conversation } from "../model/conversation";
import type { Outgoing } from "../model/outbox";
import type { Entry } from "../model/transcript";
import { textOfMessage } from "../model/types";

export const UserMessage = memo(function UserMessage({ entry }: { entry: Entry }) {
  const message = entry.message;
  if (message === undefined) return null;
  const others = message.content.filter(({ type }) => type === "image" || type === "file");
  return (
    <article className="said" aria-label="You">
      <p>{textOfMessage(message)}</p>
      {others.map((block, at) => (
        <p key={at} className="attachment">
          {block.type === "file" ? block.name : block.type === "image" ? `Image (${block.mime})` : ""}
        </p>
      ))}
    </article>
  );
});

export function OutgoingMessage({ message, conversation }: { message: Outgoing; conversation: Conversation }) {
  const failed = message.state === "failed";
  return (
    <article className={failed ? "said said-failed" : "said said-sending"} aria-label="You, not delivered yet">
      <p>{message.text}</p>
      {message.state === "unknown" && <Spinner label="Finding out whether this arrived…" />}
      {failed && (
        <div className="said-trouble" role="alert">
          <p>Not sent. {message.error}</p>
          <Button onClick={() => void conversation.retry(message.key)} icon="refresh">
            Send again
          </Button>
          <Button kind="quiet" onClick={() => conversation.discard(message.key)}>
            Discard
          </Button>
        </div>
      )}
    </article>
  );
}
