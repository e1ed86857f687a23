// The list of conversations: search, pages, where each stands.
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { setTheme, useThemeChoice } from "../../host/theme";
import { Button, IconButton, Skeleton, Spinner } from "../../ui/components";
import { useSignal } from "../../ui/signal";
import { useChat } from "../context";
import type { SessionMeta } from "../model/types";
import { hrefOf, openSession } from "../route";
import { grouped, timeOf } from "./dates";
import type { Menu } from "./menu";

interface SidebarProps {
  current: string | null;
  menu: Menu;
  onHelp(): void;
}

export function Sidebar({ current, menu, onHelp }: SidebarProps) {
  const [query, setQuery] = useState("");
  const closed = useNarrow() && !menu.open;
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!menu.open) return;
    const opener = document.activeElement;
    first.current?.focus();
    return () => {
      if (opener instanceof HTMLElement) requestAnimationFrame(() => opener.focus());
    };
  }, [menu.open]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && menu.open) {
      event.stopPropagation();
      menu.hide();
    }
  };
  return (
    <>
      {menu.open && <div className="backdrop" onClick={menu.hide} />}
      <aside className={menu.open ? "sidebar sidebar-open" : "sidebar"} aria-label="Conversations" inert={closed} onKeyDown={onKeyDown}>
        <div className="sidebar-head">
          <a className="brand" href="#/" aria-label="iii, new conversation">
            <img src="/icon.svg" alt="" width="24" height="24" /> iii
          </a>
          <span className="only-narrow">
            <IconButton icon="close" label="Close the list" onClick={menu.hide} />
          </span>
        </div>
        <Button
          ref={first}
          icon="plus"
          className="new"
          onClick={() => {
            openSession(null);
            menu.hide();
          }}
        >
          New conversation
        </Button>
        <label className="search">
          <span className="visually-hidden">Search conversations by title</span>
          <input type="search" placeholder="Search" value={query} onChange={(event) => setQuery(event.target.value)} />
        </label>
        <SessionList current={current} query={query.trim().toLowerCase()} onOpen={menu.hide} />
        <div className="sidebar-foot">
          <ThemeButton />
          <IconButton icon="keyboard" label="Keyboard shortcuts" onClick={onHelp} />
        </div>
      </aside>
    </>
  );
}

function SessionList({ current, query, onOpen }: { current: string | null; query: string; onOpen(): void }) {
  const { sessions } = useChat();
  const page = useSignal(sessions.page);
  const found = useMemo(
    () => (query === "" ? page.sessions : page.sessions.filter(({ title }) => title.toLowerCase().includes(query))),
    [page.sessions, query],
  );
  useEffect(() => {
    if (query !== "" && page.cursor !== null && !page.loading && page.error === null) void sessions.searchMore();
  }, [query, page, sessions]);
  if (!page.loaded)
    return <div className="sessions"><Skeleton lines={6} label="Loading conversations" /></div>;
  return (
    <nav className="sessions" aria-label="List of conversations">
      {page.error !== null && (
        <p className="list-note" role="alert">
          {page.error.what} {page.error.todo}
        </p>
      )}
      {found.length === 0 && page.error === null && !page.loading && (
        <p className="list-note">{query === "" ? "No conversations yet. Your first message starts one." : "No title matches."}</p>
      )}
      {grouped(found).map(([day, rows]) => (
        <section key={day} aria-label={day}>
          <h2>{day}</h2>
          <ul>
            {rows.map((session) => (
              <SessionRow key={session.session_id} session={session} current={session.session_id === current} onOpen={onOpen} />
            ))}
          </ul>
        </section>
      ))}
      {page.loading && <Spinner label="Loading…" />}
      {query === "" && page.cursor !== null && !page.loading && (
        <Button kind="quiet" className="more" onClick={() => void sessions.more()}>
          Show older conversations
        </Button>
      )}
    </nav>
  );
}

const STATUS = { idle: "", working: "working", done: "", error: "failed" } as const;

function SessionRow({ session, current, onOpen }: { session: SessionMeta; current: boolean; onOpen(): void }) {
  const ref = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (current) ref.current?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const status = STATUS[session.status];
  return (
    <li>
      <a ref={ref} className="session" href={hrefOf(session.session_id)} aria-current={current ? "page" : undefined} onClick={onOpen}>
        <span className="session-title">{session.title === "" ? "Untitled" : session.title}</span>
        {status === "" ? (
          <span className="session-time">{timeOf(session.updated_at)}</span>
        ) : (
          <span className={`dot dot-${session.status}`} role="img" aria-label={status} title={status} />
        )}
      </a>
    </li>
  );
}

const THEMES = [
  { choice: "auto", icon: "auto", label: "Theme: as the system", next: "light" },
  { choice: "light", icon: "sun", label: "Theme: light", next: "dark" },
  { choice: "dark", icon: "moon", label: "Theme: dark", next: "auto" },
] as const;

function ThemeButton() {
  const chosen = useThemeChoice();
  const theme = THEMES.find(({ choice }) => choice === chosen) ?? THEMES[0];
  return <IconButton icon={theme.icon} label={theme.label} onClick={() => setTheme(theme.next)} />;
}

function useNarrow(): boolean {
  const [query] = useState(() => matchMedia("(max-width: 760px)"));
  const [narrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const changed = () => setNarrow(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, [query]);
  return narrow;
}
