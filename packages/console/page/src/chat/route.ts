// Which conversation is open: it stands in the address, so that a reload and a link lead back to it.
import { useSyncExternalStore } from "react";

export function useSessionId(): string | null {
  return useSyncExternalStore(onHash, currentSessionId);
}

export function openSession(sessionId: string | null): void {
  location.hash = sessionId === null ? "#/" : hrefOf(sessionId);
}

export function hrefOf(sessionId: string): string {
  return `#/c/${encodeURIComponent(sessionId)}`;
}

function currentSessionId(): string | null {
  const found = /^#\/c\/([^/?]+)/.exec(location.hash)?.[1];
  try {
    return found === undefined ? null : decodeURIComponent(found);
  } catch {
    return null; // an address that somebody typed
  }
}

function onHash(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}
