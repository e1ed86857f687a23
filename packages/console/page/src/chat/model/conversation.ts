// One session, followed: its transcript, its turn, the messages that wait, and those on their way (siblings 16,
// harness-loop 3, 20).
//
// Events are hints: after each new connection everything is read anew, and events that come meanwhile wait for it.

import { CallError } from "../../bus/errors";
import { uuid } from "../../bus/uuid";
import type { HostBus } from "../../host/host";
import type { FunctionPolicy } from "../../host/settings";
import { Signal } from "../../ui/signal";
import { announce } from "./announcer";
import { type Explained, explain } from "./failures";
import { entryIdOf, keep, type Outgoing, restored } from "./outbox";
import { added, type Change, EMPTY, type Transcript, updated, withEntry, withOlder, withTail } from "./transcript";
import { isLive, textOfMessage } from "./types";
import type { AddedEvent, Message, SessionMeta, StatusReport, TailPage, UpdatedEvent } from "./types";

export type Phase = { kind: "loading" } | { kind: "ready" } | { kind: "missing" } | { kind: "failed"; error: Explained };

export interface Choice {
  provider: string;
  model: string;
  functions: FunctionPolicy;
}

interface StoredEntry {
  entry: { id: string; revision: number; message?: Message } | null;
}

const TITLE = 60;

export class Conversation {
  readonly phase = new Signal<Phase>({ kind: "loading" });
  readonly transcript = new Signal<Transcript>(EMPTY);
  readonly turn = new Signal<StatusReport | null>(null);
  readonly meta = new Signal<SessionMeta | null>(null);
  readonly outbox: Signal<readonly Outgoing[]>;
  readonly stopping = new Signal(false);
  readonly problem = new Signal<Explained | null>(null);

  private reading = false;
  private readAgain = false;
  private waiting: (() => void)[] = [];
  private readonly asking = new Map<string, UpdatedEvent[]>();
  private readonly offs: (() => void)[] = [];
  private closed = false;

  constructor(
    private readonly bus: HostBus,
    readonly sessionId: string,
  ) {
    this.outbox = new Signal(restored(sessionId));
  }

  /** Listen, and read whenever there is a new connection. */
  open(): void {
    const config = { session_id: this.sessionId };
    this.listen("session::message-added", config, (event) => this.later(() => this.onAdded(event as AddedEvent)));
    this.listen("session::message-updated", config, (event) => this.later(() => this.onUpdated(event as UpdatedEvent)));
    this.listen("session::status-changed", config, (event) => this.onSession(event as Partial<SessionMeta>));
    this.listen("session::meta-updated", config, (event) => this.onSession(event as Partial<SessionMeta>));
    this.listen("session::deleted", config, () => this.phase.set({ kind: "missing" }));
    this.listen("harness::turn-started", config, () => void this.read());
    this.listen("harness::turn-completed", config, (event) =>
      void this.onCompleted(event as { status: string; reason?: string }),
    );
    this.listen("harness::message-queued", config, () => void this.readStatus());
    this.offs.push(
      this.bus.addConnectionStateListener((state) => {
        if (state.kind === "open") void this.read();
      }),
    );
  }

  close(): void {
    this.closed = true;
    for (const off of this.offs) off();
  }

  async send(text: string, choice: Choice): Promise<void> {
    const message: Outgoing = { key: uuid().replaceAll("-", ""), text, ...choice, state: "sending" };
    this.setOutbox([...this.outbox.get(), message]);
    if (this.phase.get().kind !== "ready") this.phase.set({ kind: "ready" });
    await this.deliver(message);
  }

  async retry(key: string): Promise<void> {
    const message = this.outbox.get().find((each) => each.key === key);
    if (message !== undefined) await this.deliver(message);
  }

  discard(key: string): void {
    this.setOutbox(this.outbox.get().filter((each) => each.key !== key));
  }

  async stop(): Promise<void> {
    if (!isLive(this.turn.get()) || this.stopping.get()) return;
    this.stopping.set(true);
    await this.attempt(async () => {
      const { stopping } = await this.bus.trigger<{ stopping: boolean }>("harness::stop", { session_id: this.sessionId });
      if (!stopping) await this.read();
    });
    if (!isLive(this.turn.get())) this.stopping.set(false);
  }

  async editQueued(entryId: string, message: string): Promise<boolean> {
    const done = await this.attempt(() =>
      this.bus.trigger<{ updated: boolean }>("harness::edit_queued", {
        session_id: this.sessionId,
        entry_id: entryId,
        message,
      }),
    );
    await this.readStatus();
    return done?.updated ?? false;
  }

  async unqueue(entryId: string): Promise<boolean> {
    const done = await this.attempt(() =>
      this.bus.trigger<{ removed: boolean }>("harness::unqueue", { session_id: this.sessionId, entry_id: entryId }),
    );
    await this.readStatus();
    return done?.removed ?? false;
  }

  async rename(title: string): Promise<void> {
    await this.attempt(() => this.bus.trigger("session::set-meta", { session_id: this.sessionId, title }));
  }

  async loadOlder(): Promise<void> {
    const first = this.transcript.get().entries[0];
    if (first === undefined) return;
    await this.attempt(async () => {
      const request = { session_id: this.sessionId, before_entry_id: first.id, include_image_data: false };
      const page = await this.bus.trigger<TailPage>("session::messages-tail", request);
      this.transcript.update((known) => withOlder(known, page));
    });
  }

  /** Entries as they are stored, where a page had only their outline. */
  async complete(entryIds: string[]): Promise<void> {
    await this.attempt(async () => {
      for (const id of entryIds) await this.readEntry(id);
    });
  }

  readAnew(): Promise<void> {
    this.phase.set({ kind: "loading" });
    return this.read();
  }

  dismissProblem(): void {
    this.problem.set(null);
  }

  private listen(type: string, config: unknown, handler: (event: unknown) => void): void {
    const name = `console::chat::${type.replace("::", "-")}::${this.sessionId}`;
    this.offs.push(this.bus.on(name, (event) => handler(event)));
    this.offs.push(this.bus.registerTrigger({ type, function_id: `${name}::${this.bus.browserId}`, config }));
  }

  private later(handle: () => void): void {
    if (this.reading) this.waiting.push(handle);
    else handle();
  }

  private onAdded(event: AddedEvent): void {
    this.apply(added(this.transcript.get(), event), event.entry_id);
    this.settleOutbox();
    const turn = this.turn.get();
    if (turn?.queued?.some(({ entry_id }) => entry_id === event.entry_id))
      this.turn.set({ ...turn, queued: turn.queued.filter(({ entry_id }) => entry_id !== event.entry_id) });
  }

  private onUpdated(event: UpdatedEvent): void {
    const asked = this.asking.get(event.entry_id);
    if (asked !== undefined) asked.push(event);
    else this.apply(updated(this.transcript.get(), event), event.entry_id, event);
  }

  private apply(change: Change, entryId: string, event?: UpdatedEvent): void {
    if (change.kind === "changed") this.transcript.set(change.transcript);
    else if (change.kind === "gap") void this.read();
    else if (change.kind === "ask") void this.ask(entryId, event);
  }

  /** An entry whose revision is not known is asked for once; what comes meanwhile is laid over it. */
  private async ask(entryId: string, event: UpdatedEvent | undefined): Promise<void> {
    const events = event === undefined ? [] : [event];
    this.asking.set(entryId, events);
    try {
      await this.readEntry(entryId);
    } catch {
      // The connection is gone: the next one reads everything.
    }
    this.asking.delete(entryId);
    for (const each of events) {
      const change = updated(this.transcript.get(), each);
      if (change.kind === "changed") this.transcript.set(change.transcript);
    }
  }

  private async readEntry(id: string): Promise<boolean> {
    const request = { session_id: this.sessionId, entry_id: id };
    const stored = await this.bus.trigger<StoredEntry | null>("session::get-message", request);
    const entry = stored?.entry ?? null;
    if (entry !== null)
      this.transcript.update((known) =>
        withEntry(known, { id: entry.id, revision: entry.revision, message: entry.message }),
      );
    return entry !== null;
  }

  private onSession(change: Partial<SessionMeta>): void {
    const meta = this.meta.get();
    if (meta === null) return;
    const { status_reason: _, ...rest } = meta;
    this.meta.set({ ...("status" in change ? rest : meta), ...change });
  }

  private async onCompleted(event: { status: string; reason?: string }): Promise<void> {
    await this.read();
    const last = this.transcript.get().entries.findLast((entry) => entry.message?.role === "assistant");
    if (event.status === "completed") announce(`Answer: ${last?.message ? textOfMessage(last.message) : "done"}`);
    else announce(event.status === "failed" ? `The turn failed: ${event.reason ?? "no reason given"}` : "Stopped.");
  }

  /** Read everything; one reading at a time, and once more when it was asked for meanwhile. */
  private async read(): Promise<void> {
    this.readAgain = true;
    if (this.reading) return;
    this.reading = true;
    try {
      while (this.readAgain && !this.closed) {
        this.readAgain = false;
        await this.readOnce();
      }
    } finally {
      this.reading = false;
      for (const handle of this.waiting.splice(0)) this.later(handle);
    }
  }

  private async readOnce(): Promise<void> {
    const session_id = this.sessionId;
    try {
      const [status, session] = await Promise.all([
        this.bus.trigger<StatusReport | null>("harness::status", { session_id, verbose: true }),
        this.bus.trigger<{ meta: SessionMeta } | null>("session::get", { session_id }),
      ]);
      if (session === null) {
        this.phase.set({ kind: this.outbox.get().length > 0 ? "ready" : "missing" });
      } else {
        const page = await this.bus.trigger<TailPage>("session::messages-tail", { session_id, include_image_data: false });
        this.transcript.update((known) => withTail(known, page));
        this.meta.set(session.meta);
        this.setTurn(status);
        this.phase.set({ kind: "ready" });
      }
      this.settleOutbox();
      await this.resolveUnknown();
    } catch (error) {
      if (error instanceof CallError && error.outcomeUnknown && error.code === "connection_lost") return;
      if (this.phase.get().kind === "loading") this.phase.set({ kind: "failed", error: explain(error) });
      else this.problem.set(explain(error));
    }
  }

  private async readStatus(): Promise<void> {
    try {
      const request = { session_id: this.sessionId, verbose: true };
      this.setTurn(await this.bus.trigger<StatusReport | null>("harness::status", request));
      this.settleOutbox();
    } catch {
      // The next event or connection brings it.
    }
  }

  private setTurn(turn: StatusReport | null): void {
    this.turn.set(turn);
    if (!isLive(turn)) this.stopping.set(false);
  }

  private async deliver(message: Outgoing): Promise<void> {
    this.mark(message.key, { state: "sending" });
    try {
      await this.bus.trigger("harness::send", {
        session_id: this.sessionId,
        message: message.text,
        model: message.model,
        provider: message.provider,
        idempotency_key: message.key,
        session: { title: titleOf(message.text) },
        options: { functions: message.functions },
      });
      this.mark(message.key, { state: "sent" });
      await this.read();
    } catch (error) {
      const unknown = error instanceof CallError && error.outcomeUnknown;
      this.mark(message.key, unknown ? { state: "unknown" } : { state: "failed", error: failureText(error) });
      if (unknown && error.code !== "connection_lost") await this.read();
    }
  }

  /** What became of messages whose answer was lost; those that did not arrive are sent again under their key. */
  private async resolveUnknown(): Promise<void> {
    for (const message of this.outbox.get().filter(({ state }) => state === "unknown")) {
      if (await this.readEntry(entryIdOf(message))) this.discard(message.key);
      else void this.deliver(message);
    }
  }

  /** Messages that the transcript or the queue shows are no longer on their way. */
  private settleOutbox(): void {
    const shown = new Set([
      ...this.transcript.get().entries.map(({ id }) => id),
      ...(this.turn.get()?.queued ?? []).map(({ entry_id }) => entry_id),
    ]);
    const left = this.outbox.get().filter((message) => !shown.has(entryIdOf(message)));
    if (left.length !== this.outbox.get().length) this.setOutbox(left);
  }

  private mark(key: string, change: Partial<Outgoing>): void {
    this.setOutbox(this.outbox.get().map((each) => (each.key === key ? { ...each, ...change } : each)));
  }

  private setOutbox(messages: readonly Outgoing[]): void {
    this.outbox.set(messages);
    keep(this.sessionId, messages);
  }

  private async attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.problem.set(explain(error));
      return undefined;
    }
  }
}

function failureText(error: unknown): string {
  const { what, todo } = explain(error);
  return `${what} ${todo}`;
}

function titleOf(text: string): string {
  const line = text.split(/\s+/).filter(Boolean).join(" ");
  return line.length <= TITLE ? line : `${line.slice(0, TITLE - 1)}…`;
}
