// Data as people read it: JSON indented, text as it is.

export function JsonHighlight({ value, label }: { value: unknown; label: string }) {
  return (
    <pre className="code" tabIndex={0} role="group" aria-label={label}>
      <code>{format(value)}</code>
    </pre>
  );
}

function format(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  const text = value.trim();
  if (!/^[[{]/.test(text)) return value;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return value;
  }
}
