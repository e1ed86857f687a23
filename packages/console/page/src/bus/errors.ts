// How a call ends when it does not end well (siblings 1.2).

/** A call that the other side answered with an error, or that got no answer in time. */
export class CallError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "CallError";
  }

  /** True when this error is of a code, which some workers put into the text only. */
  is(code: string): boolean {
    return this.code === code || this.message.includes(code);
  }

  /** True when nobody can know whether the call was carried out. */
  get outcomeUnknown(): boolean {
    return this.code === CONNECTION_LOST || this.code === TIMEOUT || this.code === "invocation_stopped";
  }
}

export const CONNECTION_LOST = "connection_lost";
export const TIMEOUT = "TIMEOUT";

/** The text of an error for people: without the code that workers put in front of it. */
export function textOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/^(?:[a-z_]+: )?[a-z-]+\/[a-z_]+: /, "");
}
