/** Tamper evidence of this process: made where the store keeps audit and provenance, at work as one of the maintenance jobs. */
import { createEvidence, type Evidence, type EvidenceOptions } from "../evidence/evidence.ts";
import type { Events } from "../observe/events.ts";
import { homeOf } from "../store/home.ts";
import type { Store } from "../store/store.ts";

/** Null where the store keeps no such records. */
export function openEvidence(options: EvidenceOptions | undefined, store: Store, events: Events): Evidence | null {
  const home = homeOf(store);
  return home && createEvidence(home, events, options);
}
