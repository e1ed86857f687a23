// The list of conversations: paged, newest first, kept true by events (siblings 3.2, 3.8).

import { CallError } from "../../bus/errors";
import type { HostBus } from "../../host/host";
import { Signal } from "../../ui/signal";
import { type Explained, explain } from "./failures";
import type { SessionMeta } from "./types";

export interface SessionPage {
  readonly sessions: readonly SessionMeta[];
  readonly cursor: string | null;
  readonly loaded: boolean;
  readonly loading: boolean;
  readonly error: Explained | null;
}

interface ListResponse {
  sessions: SessionMeta[];
  next_cursor?: string;
}

const PAGE = 50;
const SEARCH_PAGE = 500;

export class Sessions {
  readonly page = new Signal<SessionPage>({ sessions: [], cursor: null, loaded: false, loading: false, error: null });
  private reading = false;
  private readAgain = false;

  constructor(private readonly bus: HostBus) {}

  open(): void {
    this.listen("session::created", () => void this.read());
    this.listen("session::status-changed", (event) => this.change(event as SessionMeta & { timestamp: number }));
    this.listen("session::meta-updated", (event) => this.change(event as SessionMeta & { timestamp: number }));
    this.listen("session::deleted", ({ session_id }) =>
      this.page.update((page) => ({ ...page, sessions: page.sessions.filter((each) => each.session_id !== session_id) })),
    );
    this.bus.addConnectionStateListener((state) => {
      if (state.kind === "open") void this.read();
    });
  }

  async more(limit = PAGE): Promise<void> {
    const { cursor, loading } = this.page.get();
    if (cursor === null || loading) return;
    this.page.update((page) => ({ ...page, loading: true }));
    try {
      const next = await this.bus.trigger<ListResponse>("session::list", { limit, cursor });
      if (next.next_cursor === cursor) throw new CallError("session/invalid_cursor", "The list of conversations repeats itself.");
      this.page.update((page) => ({
        ...page,
        sessions: merged(page.sessions, next.sessions.filter(isTop)),
        cursor: next.next_cursor ?? null,
        loading: false,
      }));
    } catch (error) {
      this.page.update((page) => ({ ...page, loading: false, error: explain(error) }));
    }
  }

  /** The next page for a search, which has to see every title. */
  async searchMore(): Promise<void> {
    await this.more(SEARCH_PAGE);
  }

  private listen(type: string, handler: (event: { session_id: string }) => void): void {
    const name = `console::chat::list-${type.replace("::", "-")}`;
    this.bus.on(name, (event) => handler(event as { session_id: string }));
    this.bus.registerTrigger({ type, function_id: `${name}::${this.bus.browserId}`, config: {} });
  }

  private async read(): Promise<void> {
    this.readAgain = true;
    if (this.reading) return;
    this.reading = true;
    while (this.readAgain) {
      this.readAgain = false;
      try {
        const first = await this.bus.trigger<ListResponse>("session::list", { limit: PAGE });
        this.page.update((page) => {
          const fresh = { error: null, loaded: true, loading: false };
          if (page.loaded && page.sessions.length > PAGE && first.next_cursor !== undefined)
            return { ...page, ...fresh, sessions: merged(page.sessions, first.sessions.filter(isTop)) };
          return { ...fresh, sessions: first.sessions.filter(isTop), cursor: first.next_cursor ?? null };
        });
      } catch (error) {
        if (error instanceof CallError && error.code === "connection_lost") break;
        this.page.update((page) => ({ ...page, error: explain(error), loaded: true }));
      }
    }
    this.reading = false;
  }

  private change(event: SessionMeta & { timestamp: number }): void {
    const known = this.page.get().sessions.find((each) => each.session_id === event.session_id);
    if (known === undefined) return void this.read();
    const { timestamp, ...fields } = event;
    const fresh = { ...known, ...fields, updated_at: timestamp };
    this.page.update((page) => ({ ...page, sessions: merged(page.sessions, [fresh]) }));
  }
}

function isTop(session: SessionMeta): boolean {
  return session.metadata?.["parent_session_id"] === undefined;
}

function merged(known: readonly SessionMeta[], fresh: readonly SessionMeta[]): SessionMeta[] {
  const byId = new Map(known.map((session) => [session.session_id, session]));
  for (const session of fresh) byId.set(session.session_id, session);
  return [...byId.values()].sort((a, b) => b.updated_at - a.updated_at);
}
