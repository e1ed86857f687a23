// The theme somebody chose; `auto` follows the system.

export type ThemeChoice = "auto" | "light" | "dark";

const KEY = "iii:theme";

export function storedTheme(): ThemeChoice {
  const stored = read();
  return stored === "light" || stored === "dark" ? stored : "auto";
}

export function storeTheme(choice: ThemeChoice): void {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // A browser that stores nothing still shows the theme until the next load.
  }
}

export function applyTheme(choice: ThemeChoice): void {
  if (choice === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = choice;
}

function read(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
