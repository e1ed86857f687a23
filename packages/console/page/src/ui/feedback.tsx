// States of a place: empty, loading, in trouble.
import type { ReactNode } from "react";
import { Icon } from "./icons";

export function EmptyState({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Spinner({ label }: { label: string }) {
  return (
    <span className="spinner-line" role="status">
      <span className="spinner" aria-hidden="true" />
      {label}
    </span>
  );
}

export function Skeleton({ lines, label }: { lines: number; label: string }) {
  return (
    <div className="skeleton" role="status" aria-label={label}>
      {Array.from({ length: lines }, (_, at) => (
        <span key={at} className="skeleton-line" />
      ))}
    </div>
  );
}

interface NoticeProps {
  tone: "info" | "warning" | "error";
  title: ReactNode;
  children?: ReactNode;
  actions?: ReactNode;
  live?: boolean;
}

export function Notice({ tone, title, children, actions, live = false }: NoticeProps) {
  return (
    <div className={`notice notice-${tone}`} role={live ? "alert" : "note"}>
      <Icon name={tone === "info" ? "info" : "alert"} />
      <div className="notice-text">
        <p className="notice-title">{title}</p>
        {children}
      </div>
      {actions !== undefined && <div className="notice-actions">{actions}</div>}
    </div>
  );
}
