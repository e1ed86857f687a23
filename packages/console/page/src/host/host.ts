// The object that a page is set up with (siblings 15.2): of its contract, what the built-in chat page uses. Pages of
// other workers get the same object.
import type { ReactNode } from "react";
import type { Binding, Bus, ConnectionState } from "../bus/bus";
import { Signal } from "../ui/signal";
import * as components from "../ui/components";
import { useTheme } from "./theme";

export interface HostBus {
  readonly browserId: string;
  trigger<T = unknown>(functionId: string, payload?: unknown, options?: { timeoutMs?: number }): Promise<T>;
  on(functionId: string, handler: (payload: unknown) => unknown): () => void;
  registerTrigger(binding: Binding): () => void;
  addConnectionStateListener(listener: (state: ConnectionState) => void): () => void;
}

export interface Page {
  id: string;
  title: string;
  render(): ReactNode;
}

export interface Host {
  readonly path: string;
  readonly iii: HostBus;
  readonly components: typeof components;
  readonly useTheme: typeof useTheme;
  readonly pages: { register(page: Page): () => void };
}

/** The pages that are there now, in the order they came. */
export const pages = new Signal<readonly Page[]>([]);

export function createHost(bus: Bus, browserId: string, path: string): Host {
  return {
    path,
    iii: {
      browserId,
      trigger: (functionId, payload = {}, options = {}) => bus.call(functionId, payload, options.timeoutMs),
      on: (functionId, handler) => bus.serve(`${functionId}::${browserId}`, handler),
      registerTrigger: (binding) => bus.bind(binding),
      addConnectionStateListener: (listener) => {
        listener(bus.state);
        return bus.onState(listener);
      },
    },
    components,
    useTheme,
    pages: {
      register(page) {
        pages.update((all) => [...all.filter((other) => other.id !== page.id), page]);
        return () => pages.update((all) => all.filter((other) => other !== page));
      },
    },
  };
}
