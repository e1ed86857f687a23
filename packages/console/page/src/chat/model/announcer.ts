// What a screen reader is told; one sentence at a time.
import { Signal } from "../../ui/signal";

export const announcement = new Signal("");

export function announce(text: string): void {
  // The same sentence twice is news both times: an invisible difference makes it so.
  announcement.update((before) => (before === text ? `${text}\u200b` : text));
}
