// What the agent may call: every function that is connected, each with a switch, and the patterns behind them.
import { useEffect, useMemo, useState } from "react";
import type { FunctionPolicy } from "../../host/settings";
import { Button, Dialog, Spinner } from "../../ui/components";
import type { Choices } from "../choices";
import { useChat } from "../context";
import { explain } from "../model/failures";
import { allows, changed, isPattern, matches, type PolicyChange, switched, UNCHANGED } from "../model/policy";

interface FunctionRow {
  function_id: string;
  description?: string;
}

export function FunctionsDialog({ choices, onClose }: { choices: Choices; onClose(): void }) {
  const { basePolicy } = useChat();
  const { rows: connected, problem } = useFunctions();
  const [query, setQuery] = useState("");
  const { change, setChange } = choices;
  const policy = useMemo(() => changed(basePolicy, change), [basePolicy, change]);
  const [policyAtFirst] = useState(policy);
  const rows = useMemo(() => connected && allowedFirst(connected, policyAtFirst), [connected, policyAtFirst]);
  const shown = (rows ?? []).filter(({ function_id, description }) =>
    `${function_id} ${description ?? ""}`.toLowerCase().includes(query.trim().toLowerCase()),
  );
  const allowed = (rows ?? []).filter(({ function_id }) => allows(policy, function_id)).length;
  return (
    <Dialog title="What the agent may call" onClose={onClose} wide>
      <p className="dialog-lead">
        Everything that workers offer, and of the platform only looking around. Changes apply from the next turn on, to this
        conversation.
      </p>
      {problem !== null && <p role="alert">{problem}</p>}
      {rows === null && problem === null && <Spinner label="Asking what is connected…" />}
      {rows !== null && (
        <>
          <div className="functions-head">
            <input
              type="search"
              placeholder="Search functions"
              aria-label="Search functions"
              value={query}
              onChange={(event) => setQuery(event.target.value)}
            />
            <span className="muted" role="status">
              {allowed} of {rows.length} allowed
            </span>
          </div>
          <ul className="functions" aria-label="Functions">
            {shown.map((row) => (
              <FunctionSwitch
                key={row.function_id}
                row={row}
                bound={change.deny.find((pattern) => pattern !== row.function_id && matches(pattern, row.function_id))}
                on={allows(policy, row.function_id)}
                onSwitch={(on) => setChange(switched(basePolicy, change, row.function_id, on))}
              />
            ))}
            {shown.length === 0 && <li className="muted">No function matches.</li>}
          </ul>
        </>
      )}
      <Patterns change={change} setChange={setChange} />
      <details className="technical">
        <summary>The policy as it is sent</summary>
        <dl>
          <div>
            <dt>allow</dt>
            <dd>{policy.allow.join("  ")}</dd>
          </div>
          <div>
            <dt>deny</dt>
            <dd>{policy.deny.join("  ")}</dd>
          </div>
        </dl>
      </details>
      <div className="form-actions">
        <Button kind="quiet" disabled={change.allow.length + change.deny.length === 0} onClick={() => setChange(UNCHANGED)}>
          Back to the default
        </Button>
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}

/** What is allowed when the dialog opens comes first; a row that is switched stays where it is. */
function allowedFirst(rows: FunctionRow[], policy: FunctionPolicy): FunctionRow[] {
  const allowed = (row: FunctionRow) => allows(policy, row.function_id);
  return [...rows.filter(allowed), ...rows.filter((row) => !allowed(row))];
}

interface FunctionSwitchProps {
  row: FunctionRow;
  on: boolean;
  /** The pattern below the list that keeps it switched off. */
  bound: string | undefined;
  onSwitch(on: boolean): void;
}

function FunctionSwitch({ row, on, bound, onSwitch }: FunctionSwitchProps) {
  return (
    <li>
      <label className="switch-row">
        <span>
          <code>{row.function_id}</code>
          {row.description !== undefined && <span className="muted">{row.description}</span>}
          {bound !== undefined && <span className="muted">Never allowed by {bound}, below.</span>}
        </span>
        <input type="checkbox" role="switch" checked={on} disabled={bound !== undefined} onChange={(event) => onSwitch(event.target.checked)} />
      </label>
    </li>
  );
}

function Patterns({ change, setChange }: { change: PolicyChange; setChange(change: PolicyChange): void }) {
  return (
    <div className="patterns">
      <PatternField label="Also allow" patterns={change.allow} onChange={(allow) => setChange({ ...change, allow })} />
      <PatternField label="Never allow" patterns={change.deny} onChange={(deny) => setChange({ ...change, deny })} />
    </div>
  );
}

interface PatternFieldProps {
  label: string;
  patterns: readonly string[];
  onChange(patterns: string[]): void;
}

function PatternField({ label, patterns, onChange }: PatternFieldProps) {
  const [text, setText] = useState("");
  const [refused, setRefused] = useState(false);
  const add = () => {
    const pattern = text.trim();
    if (pattern === "") return;
    setRefused(!isPattern(pattern));
    if (!isPattern(pattern)) return;
    setText("");
    if (!patterns.includes(pattern)) onChange([...patterns, pattern]);
  };
  return (
    <div className="pattern-field">
      <label>
        {label}
        <span className="pattern-input">
          <input
            value={text}
            placeholder="an id, or shell::*"
            aria-invalid={refused}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter") {
                event.preventDefault();
                add();
              }
            }}
          />
          <Button onClick={add}>Add</Button>
        </span>
      </label>
      {refused && <p role="alert">Give an id such as session::list, or the beginning of ids such as session::*.</p>}
      <ul className="chips" aria-label={label}>
        {patterns.map((pattern) => (
          <li key={pattern}>
            <Button kind="plain" icon="close" aria-label={`Remove ${pattern}`} onClick={() => onChange(patterns.filter((each) => each !== pattern))}>
              {pattern}
            </Button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function useFunctions(): { rows: FunctionRow[] | null; problem: string | null } {
  const { bus } = useChat();
  const [rows, setRows] = useState<FunctionRow[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let gone = false;
    bus
      .trigger<{ functions: FunctionRow[] }>("engine::functions::list")
      .then(({ functions }) => !gone && setRows(functions))
      .catch((error: unknown) => {
        const { what, todo } = explain(error);
        if (!gone) setProblem(`${what} ${todo}`);
      });
    return () => {
      gone = true;
    };
  }, [bus]);
  return { rows, problem };
}
