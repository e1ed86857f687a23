// The models that can be talked to, and the one that was chosen (siblings 5.1).

import type { HostBus } from "../../host/host";
import { Signal } from "../../ui/signal";
import { load, save } from "./storage";
import type { Model, Provider } from "./types";

export interface Catalogue {
  readonly models: readonly Model[];
  readonly providers: readonly Provider[];
  readonly loaded: boolean;
  readonly failed: boolean;
}

export interface ModelChoice {
  provider: string;
  model: string;
}

const DEMO = "scripted";

export class Models {
  readonly catalogue = new Signal<Catalogue>({ models: [], providers: [], loaded: false, failed: false });
  readonly chosen = new Signal<ModelChoice | null>(load<ModelChoice | null>("model", null));

  constructor(private readonly bus: HostBus) {}

  open(): void {
    for (const type of ["router::models::changed", "router::provider::changed"]) {
      const name = `console::chat::${type.replaceAll("::", "-")}`;
      this.bus.on(name, () => void this.read());
      this.bus.registerTrigger({ type, function_id: `${name}::${this.bus.browserId}`, config: {} });
    }
    this.bus.addConnectionStateListener((state) => {
      if (state.kind === "open") void this.read();
    });
  }

  choose(choice: ModelChoice): void {
    this.chosen.set(choice);
    save("model", choice);
  }

  private async read(): Promise<void> {
    try {
      const [{ models }, { providers }] = await Promise.all([
        this.bus.trigger<{ models: Model[] }>("router::models::list"),
        this.bus.trigger<{ providers: Provider[] }>("router::provider::list"),
      ]);
      this.catalogue.set({ models, providers, loaded: true, failed: false });
    } catch {
      this.catalogue.update((known) => ({ ...known, failed: !known.loaded }));
    }
  }
}

/** The model that a send uses: the chosen one while it is offered, else the first of a provider that has what it needs. */
export function effective({ models, providers }: Catalogue, chosen: ModelChoice | null): ModelChoice | null {
  const offered = chosen !== null && models.some(({ id, provider }) => id === chosen.model && provider === chosen.provider);
  if (chosen !== null && offered) return chosen;
  const usable = new Set(providers.filter(({ configured, id }) => configured && id !== DEMO).map(({ id }) => id));
  const first = models.find(({ provider }) => usable.has(provider)) ?? models.find(({ provider }) => provider === DEMO);
  return first === undefined ? null : { provider: first.provider, model: first.id };
}
