// A call of the agent: what it asked for, how it went, and both in full when unfolded.
import { type SyntheticEvent, useState } from "react";
import { JsonHighlight, Spinner } from "../../ui/components";
import { Icon, type IconName } from "../../ui/icons";
import { type Message, textOfMessage } from "../model/types";
import type { Call, CallState } from "../model/view";

const STATES: Record<CallState, { icon: IconName | null; label: string }> = {
  writing: { icon: null, label: "being written" },
  running: { icon: null, label: "running" },
  done: { icon: "check", label: "done" },
  failed: { icon: "cross", label: "failed" },
  denied: { icon: "ban", label: "denied" },
  interrupted: { icon: "alert", label: "interrupted" },
  not_run: { icon: "minus", label: "not run" },
};

interface CallProps {
  call: Call;
  onComplete(entryIds: string[]): Promise<void>;
}

export function CallView({ call, onComplete }: CallProps) {
  const [asked, setAsked] = useState(false);
  const onToggle = (event: SyntheticEvent<HTMLDetailsElement>) => {
    if (event.currentTarget.open && call.elided.length > 0 && !asked) {
      setAsked(true);
      void onComplete(call.elided).finally(() => setAsked(false));
    }
  };
  return (
    <details className={`fold call call-${call.state}`} onToggle={onToggle}>
      <summary>
        <StateMark state={call.state} />
        <span className="call-name">{call.functionId}</span>
        {call.purpose !== null && <span className="call-purpose">{call.purpose}</span>}
        <span className="call-state">{STATES[call.state].label}</span>
        <Icon name="chevron" size={14} />
      </summary>
      <div className="call-body">
        {call.elided.length > 0 ? (
          <Spinner label="Reading the call…" />
        ) : (
          <>
            <h3>Arguments</h3>
            <JsonHighlight value={call.arguments} label={`Arguments of ${call.functionId}`} />
            <Outcome call={call} />
          </>
        )}
      </div>
    </details>
  );
}

function Outcome({ call }: { call: Call }) {
  if (call.result !== null) {
    return (
      <>
        <h3>{call.state === "done" ? "Result" : "Answer"}</h3>
        <ResultText message={call.result} label={`Result of ${call.functionId}`} />
        {call.state === "denied" && (
          <p className="call-hint">
            What the agent may call is chosen beside the model, under <em>Functions</em>; it applies from the next turn on.
          </p>
        )}
      </>
    );
  }
  if (call.state === "not_run") return <p className="call-hint">The turn ended before this call was started.</p>;
  return null;
}

export function LooseResult({ message }: { message: Message }) {
  const state = message.is_error === true ? "failed" : "done";
  return (
    <details className={`fold call call-${state}`}>
      <summary>
        <StateMark state={state} />
        <span className="call-name">{message.function_id}</span>
        <span className="call-state">result</span>
        <Icon name="chevron" size={14} />
      </summary>
      <div className="call-body">
        <ResultText message={message} label={`Result of ${message.function_id ?? "a call"}`} />
      </div>
    </details>
  );
}

function ResultText({ message, label }: { message: Message; label: string }) {
  const text = textOfMessage(message);
  return text.trim() === "" ? <p className="call-hint">(nothing)</p> : <JsonHighlight value={text} label={label} />;
}

function StateMark({ state }: { state: CallState }) {
  const { icon } = STATES[state];
  return (
    <span className="call-mark" aria-hidden="true">
      {icon === null ? <span className="spinner" /> : <Icon name={icon} size={15} />}
    </span>
  );
}
