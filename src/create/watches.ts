/**
 * What is known of the stores without asking them, wired: refusals of the ladder count as those of an enqueue do, and the findings of
 * all stores are one list.
 */
import { type StoreWatch, startStoreWatch } from "../client/store-watch.ts";
import type { Events } from "../observe/events.ts";
import type { Finding } from "../observe/finding.ts";
import type { Clock } from "../platform/clock.ts";
import type { Holding, Ladder } from "../store/fallback.ts";
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
  { clock, events, ladder }: { readonly clock: Clock; readonly events: Events; readonly ladder: Pick<Ladder, "status"> },
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
    findings: () => [...primary.findings(), ...(below?.findings() ?? []), ...ladder.status().holdings.flatMap(heldBelow)],
    stop() {
      unheard();
      primary.stop();
      below?.stop();
    },
  };
}

/** What lies below the primary store is on its way up, and what cannot go up waits for a person. */
function heldBelow({ place, count, quarantined, oldestAtMs, survives }: Holding): Finding[] {
  const found: Finding[] = [];
  const add = (what: string, reason: string, sinceMs: number | null): void =>
    void found.push({ what, topic: null, reason, sinceMs, severity: "degraded" });
  if (count > 0)
    add("held_below", `${count} messages lie in ${place}, below the primary store: they survive ${survives}`, oldestAtMs);
  if (quarantined > 0)
    add("quarantined_below", `${quarantined} messages in ${place} cannot go up by themselves: a person decides`, null);
  return found;
}
