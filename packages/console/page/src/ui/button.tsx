// Buttons. One that shows an icon alone carries its name for those who do not see it.
import type { ButtonHTMLAttributes, Ref } from "react";
import { Icon, type IconName } from "./icons";

type Kind = "primary" | "quiet" | "plain" | "danger";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: Kind;
  icon?: IconName;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({ kind = "plain", icon, children, className = "", ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} className={`button button-${kind} ${className}`}>
      {icon !== undefined && <Icon name={icon} size={16} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "aria-label" | "title"> {
  icon: IconName;
  label: string;
  kind?: Kind;
  ref?: Ref<HTMLButtonElement>;
}

export function IconButton({ icon, label, kind = "quiet", className = "", ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={`button icon-button button-${kind} ${className}`}
      aria-label={label}
      title={label}
    >
      <Icon name={icon} />
    </button>
  );
}
