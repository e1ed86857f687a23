// From entries to what is drawn: results go to their calls, bookkeeping that is not for people stays out.

import type { Entry } from "./transcript";
import type { Block, CallBlock, Message, StatusReport } from "./types";
import { isLive } from "./types";

export type CallState = "writing" | "running" | "done" | "failed" | "denied" | "interrupted" | "not_run";

export interface Call {
  id: string;
  functionId: string;
  purpose: string | null;
  arguments: unknown;
  result: Message | null;
  state: CallState;
  /** The entries that hold the call and its result, when the page had only their outline. */
  elided: string[];
}

export type Part =
  | { kind: "text"; text: string }
  | { kind: "thinking"; text: string }
  | { kind: "call"; call: Call }
  | { kind: "attachment"; label: string };

export type Item =
  | { kind: "user"; id: string; entry: Entry }
  | { kind: "assistant"; id: string; message: Message; parts: Part[]; streaming: boolean; explained: boolean }
  | { kind: "note"; id: string; entry: Entry }
  | { kind: "result"; id: string; message: Message };

const GENERIC = "agent_trigger";
const QUIET = new Set(["runtime_context", "message_order", "model_notice"]);
const EXPLAINS = new Set(["error", "recovery"]);
const NUDGE = /_resume_\d+$/;

export function itemsOf(entries: readonly Entry[], turn: StatusReport | null): Item[] {
  const results = new Map<string, Entry>();
  for (const entry of entries)
    if (entry.message?.role === "function_result") results.set(entry.message.function_call_id ?? "", entry);
  const called = new Set<string>();
  const live = isLive(turn);
  const lastSpoken = entries.findLast((entry) => entry.message?.role === "assistant")?.id;
  const items: Item[] = [];
  for (const [at, entry] of entries.entries()) {
    const { id, message } = entry;
    if (message === undefined) {
      if (entry.custom !== undefined && !QUIET.has(entry.custom.custom_type)) items.push({ kind: "note", id, entry });
    } else if (message.role === "user") {
      items.push({ kind: NUDGE.test(id) ? "note" : "user", id, entry });
    } else if (message.role === "assistant") {
      const current = live && id === lastSpoken;
      const parts = message.content.flatMap((block) => partOf(block, entry, results, current, turn, called));
      const streaming = current && !message.content.some((block) => block.type === "function_call");
      const explained = EXPLAINS.has(entries[at + 1]?.custom?.custom_type ?? "");
      items.push({ kind: "assistant", id, message, parts, streaming, explained });
    } else if (message.role === "function_result") {
      if (!called.has(message.function_call_id ?? "")) items.push({ kind: "result", id, message });
    } else items.push({ kind: "note", id, entry });
  }
  return items;
}

function partOf(
  block: Block,
  entry: Entry,
  results: Map<string, Entry>,
  current: boolean,
  turn: StatusReport | null,
  called: Set<string>,
): Part[] {
  switch (block.type) {
    case "text":
      return block.text.trim() === "" ? [] : [{ kind: "text", text: block.text }];
    case "thinking":
      return block.text.trim() === "" ? [] : [{ kind: "thinking", text: block.text }];
    case "function_call":
      called.add(block.id);
      return [{ kind: "call", call: callOf(block, entry, results.get(block.id), current, turn) }];
    case "image":
      return [{ kind: "attachment", label: `Image (${block.mime})` }];
    case "file":
      return [{ kind: "attachment", label: block.name }];
    default:
      return [];
  }
}

function callOf(block: CallBlock, entry: Entry, result: Entry | undefined, current: boolean, turn: StatusReport | null): Call {
  const asked = unwrapped(block);
  const elided = [entry, result].filter((each): each is Entry => each?.elided === true).map(({ id }) => id);
  return { id: block.id, ...asked, result: result?.message ?? null, state: stateOf(block, result, current, turn), elided };
}

function unwrapped(block: CallBlock): Pick<Call, "functionId" | "purpose" | "arguments"> {
  const given = block.arguments;
  if (isPartial(given)) {
    const named = given["function"];
    return { functionId: typeof named === "string" ? named : block.function_id, purpose: null, arguments: given["_streaming"] };
  }
  if (block.function_id !== GENERIC || !isObject(given))
    return { functionId: block.function_id, purpose: null, arguments: given };
  return {
    functionId: typeof given["function"] === "string" ? given["function"] : GENERIC,
    purpose: typeof given["description"] === "string" ? given["description"] : null,
    arguments: given["payload"] ?? {},
  };
}

function stateOf(block: CallBlock, result: Entry | undefined, current: boolean, turn: StatusReport | null): CallState {
  const message = result?.message;
  if (message === undefined) {
    if (!current) return "not_run";
    return turn?.pending_function_calls.includes(block.id) ? "running" : isPartial(block.arguments) ? "writing" : "running";
  }
  if (message.is_error !== true) return "done";
  const error = isObject(message.details) ? message.details["error"] : undefined;
  const status = isObject(message.details) ? message.details["status"] : undefined;
  if (error === "policy_denied" || error === "hook_denied" || status === "denied") return "denied";
  return error === "interrupted" ? "interrupted" : "failed";
}

/** Arguments that are still being written show the end of their text (harness-loop 7.3). */
function isPartial(given: unknown): given is Record<string, unknown> {
  return isObject(given) && "_streaming" in given;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
