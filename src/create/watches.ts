/**
 * What is known of the stores without asking them, wired: refusals of the ladder count as those of an enqueue do, and the findings of
 * all stores are one list.
 */
import { type StoreWatch, startStoreWatch } from "../delivery/store-watch.ts";
import type { Events } from "../observe/events.ts";
import type { Finding } from "../observe/finding.ts";
import type { Clock } from "../platform/clock.ts";
import type { Store } from "../store/store.ts";

export interface Watches {
  readonly primary: StoreWatch;
  findings(): Finding[];
  stop(): void;
}

export function createWatches(
  store: Store,
  secondary: Store | null,
  opened: () => boolean,
  { clock, events }: { readonly clock: Clock; readonly events: Events },
): Watches {
  const primary = startStoreWatch({ store, opened, clock, events });
  const below = secondary && startStoreWatch({ store: secondary, opened: () => true, secondary: true, clock, events });
  const unheard = events.on(
    (event) => {
      if (event.type === "rung_failed" && event.rung === "primary") primary.refused(new Error(event.error));
    },
    { seldom: true },
  );
  return {
    primary,
    findings: () => [...primary.findings(), ...(below?.findings() ?? [])],
    stop() {
      unheard();
      primary.stop();
      below?.stop();
    },
  };
}
