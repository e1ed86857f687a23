// Messages on their way. One is kept, with its idempotency key, until the session store is known to have it: after a
// lost connection or a reload its outcome is looked up first, and only a message that did not arrive is sent again,
// under the same key (harness-loop 3.1).

import type { FunctionPolicy } from "../../host/settings";
import { load, save } from "./storage";

export interface Outgoing {
  readonly key: string;
  readonly text: string;
  readonly provider: string;
  readonly model: string;
  readonly functions: FunctionPolicy;
  readonly state: "sending" | "unknown" | "sent" | "failed";
  readonly error?: string;
}

/** The entry that the harness makes of a message with this key (siblings 3.4). */
export function entryIdOf(message: Outgoing): string {
  return `e_idem_${message.key}`;
}

/** What was on its way when the page was left: nobody knows yet what became of it. */
export function restored(sessionId: string): readonly Outgoing[] {
  return load<Outgoing[]>(`outbox:${sessionId}`, []).map((message) =>
    message.state === "failed" ? message : { ...message, state: "unknown" },
  );
}

export function keep(sessionId: string, messages: readonly Outgoing[]): void {
  save(`outbox:${sessionId}`, messages.length === 0 ? null : messages);
}
