// One connection to the bus, kept up for as long as the tab lives (engine spec 2-6, 9).
//
// A connection is an epoch: when it breaks, its calls fail at once with `connection_lost` and are never sent again by
// themselves; functions and bindings are made anew at the next one, and who sees the state become `open` again reads
// everything anew.

import { CallError, CONNECTION_LOST, TIMEOUT } from "./errors";
import { type Incoming, type InvocationResult, type InvokeFunction, readFrame } from "./frames";
import { uuid } from "./uuid";

export type ConnectionState =
  | { kind: "connecting" }
  | { kind: "open" }
  | { kind: "waiting"; retryAt: number }
  | { kind: "unauthorized" };

export interface Binding {
  type: string;
  function_id: string;
  config: unknown;
}

type Handler = (data: unknown) => unknown;
type Off = () => void;

interface OpenCall {
  resolve(value: unknown): void;
  reject(error: CallError): void;
  timer: number;
}

const CALL_MS = 30_000;
const RETRY_MS = [150, 300, 600, 1200, 2500, 5000];
const QUIET_MS = 15_000;
const ANSWER_MS = 10_000;
const UNAUTHORIZED = 4401;

export class Bus {
  state: ConnectionState = { kind: "connecting" };

  private socket: WebSocket | null = null;
  private attempts = 0;
  private retryTimer = 0;
  private quietTimer = 0;
  private readonly calls = new Map<string, OpenCall>();
  private readonly functions = new Map<string, Handler>();
  private readonly bindings = new Map<string, Binding>();
  private readonly stateListeners = new Set<(state: ConnectionState) => void>();

  constructor(
    private readonly url: () => string,
    private readonly name: string,
  ) {}

  /** Connect, and stay connected. */
  start(): void {
    addEventListener("online", () => this.retryNow());
    this.connect();
  }

  /** Do not wait for the next attempt. */
  retryNow(): void {
    if (this.socket === null) {
      clearTimeout(this.retryTimer);
      this.connect();
    }
  }

  call<T>(functionId: string, data: unknown = {}, timeoutMs = CALL_MS): Promise<T> {
    const id = uuid();
    return new Promise<T>((resolve, reject) => {
      if (this.state.kind !== "open") {
        reject(new CallError(CONNECTION_LOST, "There is no connection to the stack."));
        return;
      }
      const timer = window.setTimeout(() => {
        this.calls.delete(id);
        reject(new CallError(TIMEOUT, `${functionId} did not answer within ${timeoutMs / 1000} seconds.`));
      }, timeoutMs);
      this.calls.set(id, { resolve: resolve as (value: unknown) => void, reject, timer });
      this.send({ type: "invokefunction", invocation_id: id, function_id: functionId, data });
    });
  }

  serve(functionId: string, handler: Handler): Off {
    this.functions.set(functionId, handler);
    this.sendIfOpen(registration(functionId));
    return () => {
      if (this.functions.get(functionId) === handler) {
        this.functions.delete(functionId);
        this.sendIfOpen({ type: "unregisterfunction", id: functionId });
      }
    };
  }

  bind(binding: Binding): Off {
    const id = uuid();
    this.bindings.set(id, binding);
    this.sendIfOpen(bindingFrame(id, binding));
    return () => {
      this.bindings.delete(id);
      this.sendIfOpen({ type: "unregistertrigger", id, trigger_type: binding.type });
    };
  }

  onState(listener: (state: ConnectionState) => void): Off {
    this.stateListeners.add(listener);
    return () => this.stateListeners.delete(listener);
  }

  private connect(): void {
    this.become({ kind: "connecting" });
    const socket = new WebSocket(this.url());
    this.socket = socket;
    socket.onmessage = (event) => {
      if (socket === this.socket && typeof event.data === "string") this.receive(event.data);
    };
    socket.onclose = (event) => this.closed(socket, event.code);
  }

  private receive(text: string): void {
    this.listenForSilence();
    const frame = readFrame(text);
    if (frame !== null) this.handle(frame);
  }

  private handle(frame: Incoming): void {
    switch (frame.type) {
      case "workerregistered":
        return this.opened();
      case "invocationresult":
        return this.settle(frame);
      case "invokefunction":
        return void this.execute(frame);
      case "ping":
        return this.send({ type: "pong" });
      default:
        return;
    }
  }

  private opened(): void {
    this.attempts = 0;
    this.send({
      type: "invokefunction",
      function_id: "engine::workers::register",
      action: { type: "void" },
      data: { name: this.name, runtime: "browser", description: "A page of the page host" },
    });
    for (const id of this.functions.keys()) this.send(registration(id));
    for (const [id, binding] of this.bindings) this.send(bindingFrame(id, binding));
    this.become({ kind: "open" });
  }

  private settle(frame: InvocationResult): void {
    const call = this.calls.get(frame.invocation_id);
    if (call === undefined) return;
    this.calls.delete(frame.invocation_id);
    clearTimeout(call.timer);
    if (frame.error) call.reject(new CallError(frame.error.code, frame.error.message));
    else call.resolve(frame.result ?? null);
  }

  private async execute(frame: InvokeFunction): Promise<void> {
    const answer = { type: "invocationresult", invocation_id: frame.invocation_id, function_id: frame.function_id };
    const handler = this.functions.get(frame.function_id);
    try {
      if (handler === undefined) throw new CallError("function_not_found", `${frame.function_id} is not served here`);
      const result = await handler(frame.data);
      if (frame.invocation_id !== undefined) this.sendIfOpen({ ...answer, result: result ?? null });
    } catch (error) {
      const code = error instanceof CallError ? error.code : "invocation_failed";
      if (frame.invocation_id !== undefined)
        this.sendIfOpen({ ...answer, error: { code, message: error instanceof Error ? error.message : String(error) } });
    }
  }

  private closed(socket: WebSocket, code: number): void {
    if (socket !== this.socket) return;
    this.socket = null;
    clearTimeout(this.quietTimer);
    for (const call of this.calls.values()) {
      clearTimeout(call.timer);
      call.reject(new CallError(CONNECTION_LOST, "The connection to the stack was lost."));
    }
    this.calls.clear();
    if (code === UNAUTHORIZED) {
      this.become({ kind: "unauthorized" });
      return;
    }
    const pause = RETRY_MS[Math.min(this.attempts, RETRY_MS.length - 1)] ?? 0;
    this.attempts += 1;
    this.become({ kind: "waiting", retryAt: Date.now() + pause });
    this.retryTimer = window.setTimeout(() => this.connect(), pause);
  }

  /** A connection can be dead without a word: after a silence ask, and without an answer take it for lost. */
  private listenForSilence(): void {
    clearTimeout(this.quietTimer);
    this.quietTimer = window.setTimeout(() => {
      this.sendIfOpen({ type: "ping" });
      this.quietTimer = window.setTimeout(() => this.giveUp(), ANSWER_MS);
    }, QUIET_MS);
  }

  private giveUp(): void {
    const socket = this.socket;
    if (socket === null) return;
    socket.close();
    this.closed(socket, 0);
  }

  private become(state: ConnectionState): void {
    this.state = state;
    for (const listener of [...this.stateListeners]) listener(state);
  }

  private sendIfOpen(frame: unknown): void {
    if (this.state.kind === "open") this.send(frame);
  }

  private send(frame: unknown): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }
}

function registration(id: string): unknown {
  return {
    type: "registerfunction",
    id,
    description: "Tells an open page of an event",
    metadata: { internal: true, trace_hidden: true },
  };
}

function bindingFrame(id: string, { type, function_id, config }: Binding): unknown {
  return { type: "registertrigger", id, trigger_type: type, function_id, config };
}
