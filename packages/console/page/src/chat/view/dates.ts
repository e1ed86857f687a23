// When something happened, as people say it.
import type { SessionMeta } from "../model/types";

const DAY_MS = 86_400_000;

export function grouped(sessions: readonly SessionMeta[]): [day: string, rows: SessionMeta[]][] {
  const groups = new Map<string, SessionMeta[]>();
  for (const session of sessions) {
    const day = dayOf(session.updated_at);
    groups.set(day, [...(groups.get(day) ?? []), session]);
  }
  return [...groups];
}

export function timeOf(at: number): string {
  const date = new Date(at);
  if (at >= startOfToday()) return date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  return date.toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

function dayOf(at: number): string {
  const today = startOfToday();
  if (at >= today) return "Today";
  if (at >= today - DAY_MS) return "Yesterday";
  if (at >= today - 7 * DAY_MS) return "This week";
  return new Date(at).toLocaleDateString(undefined, { month: "long", year: "numeric" });
}

function startOfToday(): number {
  return new Date().setHours(0, 0, 0, 0);
}
