// What was said and done, oldest first; the newest stays in sight while somebody reads at the end.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Button, IconButton, Spinner } from "../../ui/components";
import { useSignal } from "../../ui/signal";
import type { Conversation } from "../model/conversation";
import { isLive } from "../model/types";
import { type Item, itemsOf } from "../model/view";
import { AssistantView } from "./assistant";
import { Note } from "./note";
import { LooseResult } from "./call";
import { OutgoingMessage, UserMessage } from "./user";

const NEAR_PX = 80;

export function TranscriptView({ conversation }: { conversation: Conversation }) {
  const transcript = useSignal(conversation.transcript);
  const turn = useSignal(conversation.turn);
  const outbox = useSignal(conversation.outbox);
  const items = useMemo(() => itemsOf(transcript.entries, turn), [transcript.entries, turn]);
  const { ref, atEnd, toEnd } = useStickToEnd([items, outbox]);
  const [loading, setLoading] = useState(false);
  const older = async () => {
    const area = ref.current;
    const fromEnd = area === null ? 0 : area.scrollHeight - area.scrollTop;
    setLoading(true);
    await conversation.loadOlder();
    setLoading(false);
    requestAnimationFrame(() => {
      if (area !== null) area.scrollTop = area.scrollHeight - fromEnd;
    });
  };
  const waiting = isLive(turn) && !items.some(isAtWork);
  return (
    <div className="scroll-frame">
      <div className="scroll" ref={ref} tabIndex={0} role="log" aria-live="off" aria-label="Conversation">
        <div className="column">
          {transcript.hasOlder &&
            (loading ? (
              <Spinner label="Loading earlier messages…" />
            ) : (
              <Button kind="quiet" className="more" onClick={() => void older()}>
                Show earlier messages
              </Button>
            ))}
          {items.map((item) => (
            <ItemView key={item.id} item={item} conversation={conversation} />
          ))}
          {outbox.map((message) => (
            <OutgoingMessage key={message.key} message={message} conversation={conversation} />
          ))}
          {waiting && <Waiting />}
        </div>
      </div>
      {!atEnd && <IconButton icon="down" label="Jump to the newest" kind="plain" className="to-end" onClick={toEnd} />}
    </div>
  );
}

/** True for an item that shows by itself that the agent works: words that come, or a call that runs. */
function isAtWork(item: Item): boolean {
  if (item.kind !== "assistant") return false;
  const running = item.parts.some((part) => part.kind === "call" && (part.call.state === "running" || part.call.state === "writing"));
  return running || (item.streaming && item.parts.length > 0);
}

function ItemView({ item, conversation }: { item: Item; conversation: Conversation }) {
  switch (item.kind) {
    case "user":
      return <UserMessage entry={item.entry} />;
    case "assistant":
      return <AssistantView item={item} onComplete={(ids) => conversation.complete(ids)} />;
    case "note":
      return <Note entry={item.entry} />;
    case "result":
      return <LooseResult message={item.message} />;
  }
}

function Waiting() {
  return (
    <p className="waiting" aria-hidden="true">
      <span />
      <span />
      <span />
    </p>
  );
}

function useStickToEnd(contents: unknown[]) {
  const ref = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const sticking = useRef(true);
  const toEnd = useCallback(() => {
    const area = ref.current;
    if (area === null) return;
    sticking.current = true;
    setAtEnd(true);
    area.scrollTop = area.scrollHeight;
  }, []);
  useEffect(() => {
    const area = ref.current;
    if (area === null) return;
    const scrolled = () => {
      sticking.current = area.scrollHeight - area.scrollTop - area.clientHeight < NEAR_PX;
      setAtEnd(sticking.current);
    };
    const resized = new ResizeObserver(() => {
      if (sticking.current) area.scrollTop = area.scrollHeight;
    });
    resized.observe(area);
    area.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      resized.disconnect();
      area.removeEventListener("scroll", scrolled);
    };
  }, []);
  useLayoutEffect(() => {
    if (sticking.current && ref.current !== null) ref.current.scrollTop = ref.current.scrollHeight;
  }, contents);
  return { ref, atEnd, toEnd };
}
