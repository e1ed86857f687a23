// What a conversation is sent with: its model and its functions, per conversation, kept in this browser.
import { useMemo, useState } from "react";
import { useSignal } from "../ui/signal";
import { useChat } from "./context";
import type { Choice } from "./model/conversation";
import { effective, type ModelChoice } from "./model/models";
import { changed, type PolicyChange, UNCHANGED } from "./model/policy";
import { load, save } from "./model/storage";
import type { Transcript } from "./model/transcript";

export interface Choices {
  model: ModelChoice | null;
  chooseModel(choice: ModelChoice): void;
  change: PolicyChange;
  setChange(change: PolicyChange): void;
  /** null while no model is known. */
  choice: Choice | null;
}

const NEW = "new";

export function useChoices(sessionId: string | null, transcript: Transcript): Choices {
  const { models, basePolicy } = useChat();
  const catalogue = useSignal(models.catalogue);
  const preferred = useSignal(models.chosen);
  const key = sessionId ?? NEW;
  const [own, setOwn] = useState(() => load<ModelChoice | null>(`model:${key}`, null));
  const [change, storeChange] = useState(() => load<PolicyChange>(`functions:${key}`, UNCHANGED));
  const used = useMemo(() => lastModel(transcript), [transcript]);
  const model = effective(catalogue, own ?? used ?? preferred);
  return {
    model,
    chooseModel(choice) {
      setOwn(choice);
      models.choose(choice);
      if (sessionId !== null) save(`model:${key}`, choice);
    },
    change,
    setChange(next) {
      storeChange(next);
      save(`functions:${key}`, next.allow.length + next.deny.length === 0 ? null : next);
    },
    choice: model === null ? null : { ...model, functions: changed(basePolicy, change) },
  };
}

/** A conversation that begins takes along what was chosen for it. */
export function handOver(sessionId: string): void {
  const change = load<PolicyChange | null>(`functions:${NEW}`, null);
  save(`functions:${sessionId}`, change);
  save(`functions:${NEW}`, null);
}

function lastModel({ entries }: Transcript): ModelChoice | null {
  const message = entries.findLast((entry) => entry.message?.role === "assistant" && entry.message.model)?.message;
  return message?.model && message.provider ? { provider: message.provider, model: message.model } : null;
}
