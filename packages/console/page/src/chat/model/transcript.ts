// The transcript of one session as a page knows it: pure functions from what is known and what arrives to what is
// known then (siblings 3.5-3.8, 16). The parent chain is the order; of one entry the highest revision counts.

import type { AddedEvent, Custom, Message, TailPage, TranscriptItem, UpdatedEvent } from "./types";

export interface Entry {
  readonly id: string;
  /** null: read from a page of the transcript, which does not tell it. */
  readonly revision: number | null;
  readonly message: Message | undefined;
  readonly custom: Custom | undefined;
  readonly elided: boolean;
}

export interface Transcript {
  readonly entries: readonly Entry[];
  readonly hasOlder: boolean;
}

export const EMPTY: Transcript = { entries: [], hasOlder: false };

/** What an event did to the transcript; `gap` and `ask` say what has to be read before it can be placed. */
export type Change = { kind: "known" } | { kind: "changed"; transcript: Transcript } | { kind: "gap" } | { kind: "ask" };

const KNOWN: Change = { kind: "known" };

/** The newest page, read anew: it rules, but what is known better than a page tells it is kept. */
export function withTail(known: Transcript, page: TailPage): Transcript {
  const byId = new Map(known.entries.map((entry) => [entry.id, entry]));
  const fresh = page.messages.map((item) => merged(byId.get(item.entry_id), item));
  const start = known.entries.findIndex((entry) => entry.id === fresh[0]?.id);
  if (start <= 0) return { entries: fresh, hasOlder: page.has_more };
  return { entries: [...known.entries.slice(0, start), ...fresh], hasOlder: known.hasOlder };
}

export function withOlder(known: Transcript, page: TailPage): Transcript {
  const ids = new Set(known.entries.map((entry) => entry.id));
  const older = page.messages.filter((item) => !ids.has(item.entry_id)).map((item) => merged(undefined, item));
  return { entries: [...older, ...known.entries], hasOlder: page.has_more };
}

export function added(known: Transcript, event: AddedEvent): Change {
  if (known.entries.some((entry) => entry.id === event.entry_id)) return KNOWN;
  const last = known.entries.at(-1);
  if ((last?.id ?? null) !== event.parent_id) return { kind: "gap" };
  const { entry_id: id, message, custom } = event;
  const entry: Entry = { id, revision: 0, message, custom, elided: false };
  return { kind: "changed", transcript: { ...known, entries: [...known.entries, entry] } };
}

export function updated(known: Transcript, event: UpdatedEvent): Change {
  const entry = known.entries.find(({ id }) => id === event.entry_id);
  if (entry === undefined) return { kind: "gap" };
  if (entry.revision === null) return { kind: "ask" };
  if (event.revision <= entry.revision) return KNOWN;
  return replaced(known, { ...entry, message: event.message, revision: event.revision, elided: false });
}

/** One entry as the store has it now, unless something newer is known. */
export function withEntry(known: Transcript, fresh: { id: string; revision: number; message: Message | undefined }): Transcript {
  const entry = known.entries.find(({ id }) => id === fresh.id);
  if (entry === undefined || (entry.revision !== null && entry.revision > fresh.revision)) return known;
  const change = replaced(known, { ...entry, message: fresh.message, revision: fresh.revision, elided: false });
  return change.kind === "changed" ? change.transcript : known;
}

function replaced(known: Transcript, entry: Entry): Change {
  const entries = known.entries.map((other) => (other.id === entry.id ? entry : other));
  return { kind: "changed", transcript: { ...known, entries } };
}

function merged(known: Entry | undefined, item: TranscriptItem): Entry {
  const elided = item.elided === true;
  if (known !== undefined) {
    const same = JSON.stringify([known.message, known.custom]) === JSON.stringify([item.message, item.custom]);
    if (same || (elided && !known.elided)) return known;
  }
  return { id: item.entry_id, revision: null, message: item.message, custom: item.custom, elided };
}
