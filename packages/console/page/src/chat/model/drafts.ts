// Texts that are written but not sent, one per conversation, kept in this browser.
import { load, save } from "./storage";

export function draftOf(sessionId: string | null): string {
  return load(key(sessionId), "");
}

export function keepDraft(sessionId: string | null, text: string): void {
  save(key(sessionId), text);
}

/** A conversation that begins takes its draft along, which by then is what was written after the message. */
export function moveDraft(from: string | null, to: string): void {
  keepDraft(to, draftOf(from));
  keepDraft(from, "");
}

function key(sessionId: string | null): string {
  return `draft:${sessionId ?? "new"}`;
}
