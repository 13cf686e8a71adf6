/** What went of each class, for who wants to hear of it. */
import type { PruneRequest } from "../store.ts";

/** `dead`: how many of all were dead letters that had ended. */
export function tellWent({ went }: PruneRequest, all: number, dead: number): void {
  if (all > dead) went?.("delivered", all - dead);
  if (dead > 0) went?.("dead", dead);
}
