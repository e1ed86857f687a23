// Frames of the bus protocol, as far as a page speaks it (engine spec 3).

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Failure {
  code: string;
  message: string;
}

export interface WorkerRegistered {
  type: "workerregistered";
  worker_id: string;
}

export interface InvokeFunction {
  type: "invokefunction";
  invocation_id?: string;
  function_id: string;
  data: unknown;
}

export interface InvocationResult {
  type: "invocationresult";
  invocation_id: string;
  result?: unknown;
  error?: Failure;
}

export interface RegistrationRejected {
  type: "registrationrejected";
  code: string;
}

export type Incoming =
  | WorkerRegistered
  | InvokeFunction
  | InvocationResult
  | RegistrationRejected
  | { type: "ping" }
  | { type: "pong" }
  | { type: "error"; error: Failure };

/** The frame in a text, or null when it is none that a page can read. */
export function readFrame(text: string): Incoming | null {
  try {
    const frame: unknown = JSON.parse(text);
    return typeof frame === "object" && frame !== null && "type" in frame ? (frame as Incoming) : null;
  } catch {
    return null;
  }
}
