// What an error means to the person at the page, and what to do about it.

import { CallError, textOf } from "../../bus/errors";

const WHAT_TO_DO: [code: string, text: string][] = [
  ["function_not_found", "A part of the stack is not running. Start it with all its parts, then try again."],
  ["session/not_found", "This conversation does not exist any more. Start a new one."],
  ["router/unknown_provider", "The chosen provider is not connected. Choose another model."],
  ["router/not_configured", "The chosen provider has no key. Set its key and start the stack again, or choose another model."],
  ["harness/dependency", "Another part of the stack failed. Try again; the log of the stack tells more."],
  ["TIMEOUT", "The stack is very busy or stuck. Try again in a moment."],
  ["connection_lost", "It is looked up and sent again as soon as the stack answers."],
];

export interface Explained {
  what: string;
  todo: string;
}

export function explain(error: unknown): Explained {
  const what = textOf(error);
  const found = error instanceof CallError ? WHAT_TO_DO.find(([code]) => error.is(code)) : undefined;
  return { what, todo: found?.[1] ?? "Try again. If it stays, the log of the stack tells more." };
}
