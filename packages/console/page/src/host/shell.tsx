// The frame around the pages: which one is shown, and what is said when the bus wants a token.
import { useEffect, useState, useSyncExternalStore } from "react";
import type { Bus } from "../bus/bus";
import { Boundary } from "./boundary";
import { Button } from "../ui/components";
import { useSignal } from "../ui/signal";
import { pages } from "./host";
import { setToken } from "./token";

export const HOME = "chat";

export function Shell({ bus }: { bus: Bus }) {
  const all = useSignal(pages);
  const hash = useSyncExternalStore(onHash, () => location.hash);
  const wanted = /^#\/ext\/([^/?]+)/.exec(hash)?.[1] ?? HOME;
  const page = all.find(({ id }) => id === wanted) ?? all.find(({ id }) => id === HOME);
  useEffect(() => {
    document.documentElement.dataset["page"] = page?.id ?? "";
  }, [page]);
  return (
    <>
      <TokenGate bus={bus} />
      <Boundary at={hash}>{page?.render()}</Boundary>
    </>
  );
}

function TokenGate({ bus }: { bus: Bus }) {
  const state = useSyncExternalStore((changed) => bus.onState(changed), () => bus.state);
  const [given, setGiven] = useState("");
  const [tried, setTried] = useState(false);
  if (state.kind !== "unauthorized" && !(tried && state.kind === "connecting")) return null;
  return (
    <form
      className="token-gate"
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        setToken(given);
        bus.retryNow();
      }}
    >
      <h1>This stack wants its token</h1>
      <p>
        It was started with <code>III_TOKEN</code>. Enter the same secret; it is kept for this tab only.
      </p>
      <label>
        Token
        <input type="password" autoComplete="off" value={given} onChange={(event) => setGiven(event.target.value)} autoFocus />
      </label>
      {tried && <p role="alert">That token was not accepted.</p>}
      <Button kind="primary" type="submit" disabled={given.trim() === ""}>
        Connect
      </Button>
    </form>
  );
}

function onHash(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}
