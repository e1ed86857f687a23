// The model of the next message.
import { useSignal } from "../../ui/signal";
import type { Choices } from "../choices";
import { useChat } from "../context";
import type { Model } from "../model/types";

export function ModelPicker({ choices }: { choices: Choices }) {
  const { models } = useChat();
  const catalogue = useSignal(models.catalogue);
  const byProvider = new Map<string, Model[]>();
  for (const model of catalogue.models) byProvider.set(model.provider, [...(byProvider.get(model.provider) ?? []), model]);
  const nameOf = (id: string) => catalogue.providers.find((provider) => provider.id === id)?.display_name ?? id;
  if (catalogue.models.length === 0) return <span className="picker picker-empty">{catalogue.loaded ? "No model" : "Models…"}</span>;
  return (
    <label className="picker">
      <span className="visually-hidden">Model</span>
      <select
        value={choices.model === null ? "" : `${choices.model.provider}/${choices.model.model}`}
        onChange={(event) => {
          const at = event.target.value.indexOf("/");
          choices.chooseModel({ provider: event.target.value.slice(0, at), model: event.target.value.slice(at + 1) });
        }}
      >
        {[...byProvider].map(([provider, entries]) => (
          <optgroup key={provider} label={nameOf(provider)}>
            {entries.map((model) => (
              <option key={model.id} value={`${provider}/${model.id}`}>
                {model.display_name ?? model.id}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}
