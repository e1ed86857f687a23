// Which functions a conversation may call: the policy of a chat, which the page host hands over, and what somebody
// changed on it (design "Decided interfaces"; globs: harness-loop 9A.1).
//
// A denied pattern wins over an allowed one, so allowing a function that a pattern denies means replacing the pattern
// by what is left of it, as `iii-stack chat --allow` does.

import type { FunctionPolicy } from "../../host/settings";

export interface PolicyChange {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

export const UNCHANGED: PolicyChange = { allow: [], deny: [] };

const SIMPLE = /^(?:[a-z0-9_:.-]+\*?|\*)$/;

/** True for an id, or a beginning of ids with a `*` behind: the patterns that can be taken out of others. */
export function isPattern(text: string): boolean {
  return SIMPLE.test(text);
}

export function changed(base: FunctionPolicy, change: PolicyChange): FunctionPolicy {
  const denied = base.deny.flatMap((pattern) => without(pattern, change.allow));
  return { allow: [...base.allow], deny: [...denied, ...change.deny], expose: base.expose };
}

export function allows(policy: FunctionPolicy, id: string): boolean {
  return policy.allow.some((glob) => matches(glob, id)) && !policy.deny.some((glob) => matches(glob, id));
}

/** The change with one function switched on or off. */
export function switched(base: FunctionPolicy, change: PolicyChange, id: string, on: boolean): PolicyChange {
  const [gains, loses] = on ? (["allow", "deny"] as const) : (["deny", "allow"] as const);
  const next = { ...change, [loses]: change[loses].filter((pattern) => pattern !== id) };
  if (allows(changed(base, next), id) === on) return next;
  return { ...next, [gains]: [...next[gains], id] };
}

export function matches(glob: string, id: string): boolean {
  return pattern(glob).test(id);
}

const compiled = new Map<string, RegExp>();

function pattern(glob: string): RegExp {
  let known = compiled.get(glob);
  if (known === undefined) {
    known = new RegExp(`^(?:${source(glob)})$`, "su");
    compiled.set(glob, known);
  }
  return known;
}

/** Of the glob language what a policy of a chat consists of: ids, `*`, `?` and classes. */
function source(glob: string): string {
  return glob.replace(/\*|\?|\[(!?)([^\]]+)\]|[^*?[]+|\[/g, (part: string, not: string | undefined, members: string) => {
    if (part === "*") return ".*";
    if (part === "?") return ".";
    if (members !== undefined) return `[${not === "!" ? "^" : ""}${members.replace(/[\\\]^]/g, "\\$&")}]`;
    return part.replace(/[\\^$.+()[\]{}|/]/g, "\\$&");
  });
}

function without(denied: string, allowed: readonly string[]): string[] {
  if (allowed.some((other) => covers(other, denied))) return [];
  const inside = allowed.filter((other) => covers(denied, other));
  if (inside.length === 0) return [denied];
  const start = denied.replace(/\*$/, "");
  return complement(inside.map((other) => other.slice(start.length))).map((rest) => start + rest);
}

function covers(one: string, other: string): boolean {
  return one.endsWith("*") ? other.startsWith(one.slice(0, -1)) : one === other;
}

/** Globs of every text that none of the endings matches, each a literal that may end in `*`. */
function complement(endings: string[]): string[] {
  if (endings.includes("*")) return [];
  const branches = new Map<string, string[]>();
  for (const ending of endings.filter((each) => each !== "")) {
    const tails = branches.get(ending.charAt(0)) ?? [];
    branches.set(ending.charAt(0), [...tails, ending.slice(1)]);
  }
  const letters = [...branches.keys()].sort((a, b) => Number(a === "-") - Number(b === "-") || (a < b ? -1 : 1)).join("");
  const rest = endings.includes("") ? [] : [""];
  rest.push(letters === "" ? "?*" : `[!${letters}]*`);
  for (const [letter, tails] of branches) rest.push(...complement(tails).map((tail) => letter + tail));
  return rest;
}
