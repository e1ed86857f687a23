// Entries that the loop writes for people: errors, recoveries, notices; and what has no form of its own, as it is stored
// (harness-loop 11.2-11.4).
import { memo } from "react";
import { JsonHighlight, Notice } from "../../ui/components";
import { Icon } from "../../ui/icons";
import type { Entry } from "../model/transcript";
import { textOfMessage } from "../model/types";
import { isObject } from "../model/view";

export const Note = memo(function Note({ entry }: { entry: Entry }) {
  if (entry.message !== undefined)
    return <QuietNote text={entry.message.role === "user" ? "The agent was asked to go on" : (entry.message.display ?? "Note")} detail={textOfMessage(entry.message)} />;
  const { custom_type: type, data } = entry.custom ?? { custom_type: "", data: null };
  const fields = isObject(data) ? data : {};
  switch (type) {
    case "error":
      return <ErrorNote fields={fields} />;
    case "recovery":
      return <RecoveryNote fields={fields} />;
    case "notice":
      return <QuietNote text={said(fields, "message") ?? said(fields, "reason") ?? "Notice"} />;
    case "compaction":
      return <QuietNote text="Earlier messages were summarised to make room" detail={said(fields, "summary") ?? ""} />;
    default:
      return (
        <details className="fold call">
          <summary>
            <span className="call-name">{type}</span>
            <Icon name="chevron" size={14} />
          </summary>
          <div className="call-body">
            <JsonHighlight value={data} label={type} />
          </div>
        </details>
      );
  }
});

function ErrorNote({ fields }: { fields: Record<string, unknown> }) {
  const actions = Array.isArray(fields["next_actions"]) ? fields["next_actions"].map(actionText) : [];
  const reason = said(fields, "reason");
  const summary = said(fields, "summary") ?? reason ?? "The turn failed.";
  return (
    <Notice tone="error" title={summary}>
      {fields["partial_result_available"] === true && <p>What had arrived is kept above.</p>}
      {actions.length > 0 && (
        <ul className="actions">
          {actions.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      <Technical fields={fields} />
    </Notice>
  );
}

function RecoveryNote({ fields }: { fields: Record<string, unknown> }) {
  const recovering = fields["status"] === "recovering";
  const title = said(fields, "summary") ?? (recovering ? "The answer broke off." : "Recovered.");
  return (
    <Notice tone={recovering ? "warning" : "info"} title={title}>
      {recovering && (
        <p>
          Going on from there, attempt {String(fields["attempt"] ?? 1)} of {String(fields["max_attempts"] ?? 1)}.
        </p>
      )}
      {recovering && <Technical fields={fields} />}
    </Notice>
  );
}

const TECHNICAL = ["code", "class", "provider", "model", "phase", "detail"] as const;

function Technical({ fields }: { fields: Record<string, unknown> }) {
  const known = TECHNICAL.filter((key) => said(fields, key) !== null);
  if (known.length === 0) return null;
  return (
    <details className="technical">
      <summary>Details</summary>
      <dl>
        {known.map((key) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{said(fields, key)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function QuietNote({ text, detail = "" }: { text: string; detail?: string }) {
  if (detail === "")
    return (
      <p className="quiet-note" role="note">
        <span>{text}</span>
      </p>
    );
  return (
    <details className="quiet-note">
      <summary>
        <span>{text}</span>
      </summary>
      <p>{detail}</p>
    </details>
  );
}

function actionText(action: unknown): string {
  if (typeof action === "string") return action;
  return isObject(action) ? (said(action, "label") ?? said(action, "text") ?? JSON.stringify(action)) : String(action);
}

function said(fields: Record<string, unknown>, key: string): string | null {
  const value = fields[key];
  return typeof value === "string" && value !== "" ? value : null;
}
