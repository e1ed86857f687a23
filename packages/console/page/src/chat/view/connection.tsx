// Says that the connection is lost, until it is back.
import { useEffect, useRef, useState } from "react";
import type { ConnectionState } from "../../bus/bus";
import { useChat } from "../context";
import { announce } from "../model/announcer";

const PATIENCE_MS = 400;

export function useConnection(): ConnectionState {
  const { bus } = useChat();
  const [state, setState] = useState<ConnectionState>({ kind: "connecting" });
  useEffect(() => bus.addConnectionStateListener(setState), [bus]);
  return state;
}

export function ConnectionBanner() {
  const lost = useLost();
  const wasLost = useRef(false);
  useEffect(() => {
    if (lost) announce("Connection lost. Trying again.");
    else if (wasLost.current) announce("Connected again.");
    wasLost.current = lost;
  }, [lost]);
  if (!lost) return null;
  return (
    <div className="connection">
      <span className="spinner" aria-hidden="true" />
      <span>
        <strong>Connection lost.</strong> Trying again by itself. What you write is kept; if the stack was stopped, start it with{" "}
        <code>iii-stack up</code>.
      </span>
    </div>
  );
}

/** A blink is not worth a word: it is lost when it has been for a moment. */
function useLost(): boolean {
  const { kind } = useConnection();
  const away = kind === "connecting" || kind === "waiting";
  const [lost, setLost] = useState(false);
  useEffect(() => {
    if (!away) {
      setLost(false);
      return;
    }
    const timer = setTimeout(() => setLost(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [away]);
  return lost;
}
