// The chat page: the list of conversations beside the open one.
import { useCallback, useEffect, useState } from "react";
import { uuid } from "../../bus/uuid";
import { useSignal } from "../../ui/signal";
import { handOver } from "../choices";
import { useChat } from "../context";
import { announcement } from "../model/announcer";
import { type Choice, Conversation } from "../model/conversation";
import { moveDraft } from "../model/drafts";
import { openSession, useSessionId } from "../route";
import { ConnectionBanner } from "./connection";
import { ConversationView, NewConversation } from "./conversation";
import { ShortcutsDialog, useShortcuts } from "./shortcuts";
import { Sidebar } from "./sidebar";

export function ChatPage() {
  const { bus } = useChat();
  const sessionId = useSessionId();
  const [drawer, setDrawer] = useState(false);
  const [help, setHelp] = useState(false);
  const [conversation, setConversation] = useState<Conversation | null>(null);

  useEffect(() => {
    setDrawer(false);
    if (sessionId === null) {
      setConversation(null);
      return;
    }
    const opened = takeStarted(sessionId) ?? new Conversation(bus, sessionId);
    opened.open();
    setConversation(opened);
    return () => opened.close();
  }, [bus, sessionId]);

  const begin = useCallback(
    (text: string, choice: Choice) => {
      const started = new Conversation(bus, `s_${uuid()}`);
      handOver(started.sessionId);
      moveDraft(null, started.sessionId);
      void started.send(text, choice);
      startedHere = started;
      openSession(started.sessionId);
    },
    [bus],
  );
  useShortcuts({ onHelp: () => setHelp(true) });
  const menu = { open: drawer, show: () => setDrawer(true), hide: () => setDrawer(false) };
  const shown = conversation?.sessionId === sessionId ? conversation : null;
  return (
    <div className="chat">
      <a className="skip" href="#message" onClick={focusComposer}>
        Skip to the message field
      </a>
      <Sidebar current={sessionId} menu={menu} onHelp={() => setHelp(true)} />
      <main className="main" inert={drawer}>
        <ConnectionBanner />
        {sessionId === null && <NewConversation menu={menu} onSend={begin} />}
        {shown !== null && <ConversationView key={shown.sessionId} conversation={shown} menu={menu} />}
      </main>
      {help && <ShortcutsDialog onClose={() => setHelp(false)} />}
      <Announcer />
    </div>
  );
}

/** The conversation that this tab has just begun: it holds the message that is on its way. */
let startedHere: Conversation | null = null;

function takeStarted(sessionId: string): Conversation | null {
  const started = startedHere;
  startedHere = null;
  return started?.sessionId === sessionId ? started : null;
}

function focusComposer(event: { preventDefault(): void }): void {
  event.preventDefault();
  document.getElementById("message")?.focus();
}

function Announcer() {
  return (
    <div className="visually-hidden" role="status" aria-live="polite" aria-atomic="true">
      {useSignal(announcement)}
    </div>
  );
}
