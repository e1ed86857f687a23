// What the page keeps in the browser: texts that are not sent yet, and choices. A browser that keeps nothing only
// loses them at a reload.

export function load<T>(key: string, otherwise: T): T {
  try {
    const stored = localStorage.getItem(`iii:${key}`);
    return stored === null ? otherwise : (JSON.parse(stored) as T);
  } catch {
    return otherwise;
  }
}

export function save(key: string, value: unknown): void {
  try {
    if (value === null || value === "") localStorage.removeItem(`iii:${key}`);
    else localStorage.setItem(`iii:${key}`, JSON.stringify(value));
  } catch {
    // Full, or switched off.
  }
}
