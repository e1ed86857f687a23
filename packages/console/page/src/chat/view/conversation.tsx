// One conversation: what was said, what waits, and the field for what comes next.
import { useEffect } from "react";
import { Button, EmptyState, Notice, Skeleton } from "../../ui/components";
import { useSignal } from "../../ui/signal";
import { useChoices } from "../choices";
import type { Choice, Conversation } from "../model/conversation";
import { EMPTY } from "../model/transcript";
import { isLive } from "../model/types";
import { openSession } from "../route";
import { Composer } from "./composer";
import { Header } from "./header";
import type { Menu } from "./menu";
import { Queue } from "./queue";
import { TranscriptView } from "./transcript";

export function ConversationView({ conversation, menu }: { conversation: Conversation; menu: Menu }) {
  const phase = useSignal(conversation.phase);
  const transcript = useSignal(conversation.transcript);
  const turn = useSignal(conversation.turn);
  const stopping = useSignal(conversation.stopping);
  const choices = useChoices(conversation.sessionId, transcript);
  const live = isLive(turn);
  useStopKey(conversation, live);
  return (
    <>
      <Header conversation={conversation} menu={menu} />
      {phase.kind === "loading" && (
        <div className="scroll">
          <div className="column">
            <Skeleton lines={5} label="Loading the conversation" />
          </div>
        </div>
      )}
      {phase.kind === "missing" && (
        <EmptyState title="There is no such conversation">
          <p>It may have been deleted, or it belongs to another stack.</p>
          <Button kind="primary" icon="plus" onClick={() => openSession(null)}>
            New conversation
          </Button>
        </EmptyState>
      )}
      {phase.kind === "failed" && (
        <EmptyState title="This conversation could not be read">
          <p role="alert">
            {phase.error.what} {phase.error.todo}
          </p>
          <Button kind="primary" icon="refresh" onClick={() => void conversation.readAnew()}>
            Try again
          </Button>
        </EmptyState>
      )}
      {phase.kind === "ready" && (
        <>
          <TranscriptView conversation={conversation} />
          <div className="dock">
            <Problem conversation={conversation} />
            <Queue conversation={conversation} />
            <Composer
              sessionId={conversation.sessionId}
              choices={choices}
              live={live}
              stopping={stopping}
              onStop={() => void conversation.stop()}
              onSend={(text, choice) => void conversation.send(text, choice)}
            />
          </div>
        </>
      )}
    </>
  );
}

const SUGGESTIONS = ["What can you do here?", "Which workers are connected?"];

export function NewConversation({ menu, onSend }: { menu: Menu; onSend(text: string, choice: Choice): void }) {
  const choices = useChoices(null, EMPTY);
  return (
    <>
      <Header conversation={null} menu={menu} />
      <div className="welcome">
        <h2>What should the agent do?</h2>
        <p>
          An agent is a model and the functions of the workers that are connected to this stack. It looks around by itself; below you
          choose the model and what it may call.
        </p>
        <ul className="suggestions" aria-label="Suggestions">
          {SUGGESTIONS.map((text) => (
            <li key={text}>
              <Button disabled={choices.choice === null} onClick={() => choices.choice !== null && onSend(text, choices.choice)}>
                {text}
              </Button>
            </li>
          ))}
        </ul>
      </div>
      <div className="dock">
        <Composer sessionId={null} choices={choices} live={false} stopping={false} onStop={() => undefined} onSend={onSend} />
      </div>
    </>
  );
}

function Problem({ conversation }: { conversation: Conversation }) {
  const problem = useSignal(conversation.problem);
  if (problem === null) return null;
  const dismiss = (
    <Button kind="quiet" onClick={() => conversation.dismissProblem()}>
      Dismiss
    </Button>
  );
  return (
    <Notice tone="error" title={problem.what} actions={dismiss} live>
      <p>{problem.todo}</p>
    </Notice>
  );
}

function useStopKey(conversation: Conversation, live: boolean): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || !live) return;
      if (document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      void conversation.stop();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [conversation, live]);
}
