// What the agent said: its text, its thinking folded, its calls folded.
import { memo } from "react";
import { Markdown } from "../../ui/components";
import { Icon } from "../../ui/icons";
import type { Item, Part } from "../model/view";
import { CallView } from "./call";

type AssistantItem = Extract<Item, { kind: "assistant" }>;

interface AssistantProps {
  item: AssistantItem;
  onComplete(entryIds: string[]): Promise<void>;
}

export const AssistantView = memo(function AssistantView({ item, onComplete }: AssistantProps) {
  const { message, parts, streaming, explained } = item;
  const trouble = explained ? undefined : message.error_message;
  if (parts.length === 0 && !trouble) return null;
  return (
    <article className={streaming ? "answer answer-streaming" : "answer"} aria-label="Agent" aria-busy={streaming}>
      {parts.map((part, at) => (
        <PartView key={part.kind === "call" ? part.call.id : at} part={part} streaming={streaming && at === parts.length - 1} onComplete={onComplete} />
      ))}
      {message.stop_reason === "length" && <p className="aside">The answer was cut off: the model reached its limit of output.</p>}
      {trouble && <p className="aside aside-error">{trouble}</p>}
      {message.warnings?.map((warning, at) => (
        <p key={at} className="aside">
          {warning}
        </p>
      ))}
    </article>
  );
}, sameItem);

function sameItem(before: AssistantProps, after: AssistantProps): boolean {
  const [a, b] = [before.item, after.item];
  return (
    a.message === b.message &&
    a.streaming === b.streaming &&
    a.explained === b.explained &&
    a.parts.length === b.parts.length &&
    a.parts.every((part, at) => samePart(part, b.parts[at]))
  );
}

function samePart(a: Part, b: Part | undefined): boolean {
  if (a.kind !== "call" || b?.kind !== "call") return true; // the message is the same, so its texts are
  return a.call.state === b.call.state && a.call.result === b.call.result && a.call.elided.length === b.call.elided.length;
}

interface PartProps {
  part: Part;
  streaming: boolean;
  onComplete(entryIds: string[]): Promise<void>;
}

function PartView({ part, streaming, onComplete }: PartProps) {
  switch (part.kind) {
    case "text":
      return <Markdown text={part.text} />;
    case "thinking":
      return <Thinking text={part.text} streaming={streaming} />;
    case "call":
      return <CallView call={part.call} onComplete={onComplete} />;
    case "attachment":
      return <p className="attachment">{part.label}</p>;
  }
}

function Thinking({ text, streaming }: { text: string; streaming: boolean }) {
  return (
    <details className="fold thinking">
      <summary>
        <Icon name="chevron" size={14} />
        {streaming ? "Thinking…" : "Thought"}
      </summary>
      <div className="thinking-text">{text}</div>
    </details>
  );
}
