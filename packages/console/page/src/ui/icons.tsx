// Icons, drawn with the current colour; names are given by what they stand in.
import type { ReactNode } from "react";

export type IconName = keyof typeof PATHS;

const PATHS = {
  plus: <path d="M12 5v14M5 12h14" />,
  menu: <path d="M4 7h16M4 12h16M4 17h16" />,
  close: <path d="M6 6l12 12M18 6L6 18" />,
  search: <><circle cx="11" cy="11" r="6" /><path d="M20 20l-4.5-4.5" /></>,
  send: <path d="M12 19V5M6 11l6-6 6 6" />,
  stop: <rect x="7" y="7" width="10" height="10" rx="1.5" fill="currentColor" stroke="none" />,
  chevron: <path d="M9 6l6 6-6 6" />,
  check: <path d="M5 12.5l4.5 4.5L19 7.5" />,
  cross: <path d="M7 7l10 10M17 7L7 17" />,
  ban: <><circle cx="12" cy="12" r="8" /><path d="M6.5 6.5l11 11" /></>,
  alert: <><path d="M12 4l9 16H3z" /><path d="M12 10v4M12 17v.5" /></>,
  info: <><circle cx="12" cy="12" r="8.5" /><path d="M12 11v5M12 8v.5" /></>,
  minus: <path d="M6 12h12" />,
  pencil: <path d="M5 19l1-4L16 5l3 3L9 18z" />,
  copy: <><rect x="9" y="9" width="10" height="10" rx="2" /><path d="M15 6.5A1.5 1.5 0 0 0 13.5 5h-7A1.500 1.5 0 0 0 5 6.500v7A1.500 1.5 0 0 0 6.5 15" /></>,
  sun: <><circle cx="12" cy="12" r="4" /><path d="M12 3v2M12 19v2M3 12h2M19 12h2M5.600 5.600l1.400 1.400M17 17l1.400 1.400M5.600 18.400L7 17M17 7l1.400-1.4" /></>,
  moon: <path d="M19.500 14.500A8 8 0 0 1 9.5 4.500a8 8 0 1 0 10 10z" />,
  auto: <><circle cx="12" cy="12" r="8" /><path d="M12 4v16a8 8 0 0 0 0-16z" fill="currentColor" /></>,
  keyboard: <><rect x="3" y="7" width="18" height="11" rx="2" /><path d="M7 11h.01M11 11h.01M15 11h.01M8 14.500h8" /></>,
  shield: <path d="M12 4l7 2.500V12c0 4-3 6.8-7 8-4-1.2-7-4-7-8V6.500z" />,
  refresh: <path d="M19 12a7 7 0 1 1-2-5l2 2M19 5v4h-4" />,
  down: <path d="M12 5v14M6 13l6 6 6-6" />,
} satisfies Record<string, ReactNode>;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      {PATHS[name]}
    </svg>
  );
}
