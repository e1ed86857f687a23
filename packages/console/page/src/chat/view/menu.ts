// The list of conversations as a drawer on narrow screens.
export interface Menu {
  open: boolean;
  show(): void;
  hide(): void;
}
