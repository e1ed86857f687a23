// The theme as React sees it.
import { useSyncExternalStore } from "react";
import { Signal, useSignal } from "../ui/signal";
import { applyTheme, storedTheme, storeTheme, type ThemeChoice } from "./theme-choice";

const choice = new Signal<ThemeChoice>(storedTheme());
const system = matchMedia("(prefers-color-scheme: dark)");

export function setTheme(next: ThemeChoice): void {
  storeTheme(next);
  applyTheme(next);
  choice.set(next);
}

export function useThemeChoice(): ThemeChoice {
  return useSignal(choice);
}

/** The theme that is shown now (siblings 15.2 `host.useTheme`). */
export function useTheme(): "light" | "dark" {
  const chosen = useThemeChoice();
  const dark = useSyncExternalStore(
    (changed) => {
      system.addEventListener("change", changed);
      return () => system.removeEventListener("change", changed);
    },
    () => system.matches,
  );
  return chosen === "auto" ? (dark ? "dark" : "light") : chosen;
}
