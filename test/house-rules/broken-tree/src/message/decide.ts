/** A decision that asks the store. */
import type { Store } from "../store/store.ts";

export function decide(store: Store): string {
  return String(store);
}
