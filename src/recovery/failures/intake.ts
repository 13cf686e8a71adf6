/** The one way into the groups: failures are placed and written in batches, one at a time; what cannot be written fails its caller alone. */
import { isMakegoodError, MakegoodError } from "../../message/errors.ts";
import type { Fence } from "../../platform/job.ts";
import { INGEST_MAX } from "../candidates/candidate-state.ts";
import type { IngestSettings } from "../candidates/rounds.ts";
import { scopeOf } from "../fingerprint/group-rules.ts";
import type { GroupIdentity } from "../groups/group.ts";
import type { Records } from "../records.ts";
import type { Incoming } from "./incoming.ts";
import type { Ingested } from "./ingest.ts";
import type { GroupJoins } from "./join-groups.ts";
import type { FailurePlaces, Scope } from "./place-failures.ts";

/** I10: more than this waiting is refused; the reporter may come again. */
const WAITING_MAX = 20_000;
const TOUCHED_MAX = 1_000;

/** Whether the same write may succeed later. */
export function mayPass(error: unknown): boolean {
  return isMakegoodError(error) && error.retryable;
}

interface Waiting {
  readonly incoming: Incoming;
  /** Of a led job. */
  readonly under: Fence | null;
  readonly resolve: (ingested: Ingested) => void;
  readonly reject: (error: unknown) => void;
}

export interface IntakeOptions {
  readonly recovery: Pick<Records, "ingest">;
  readonly places: FailurePlaces;
  readonly joins: GroupJoins;
  readonly settings: IngestSettings;
  /** A join that failed; the failures are counted all the same, and the next look joins them. */
  readonly joinFailed: (error: unknown) => void;
  /** A resolved group failed again. */
  readonly regressed: (ingested: Ingested) => void;
}

export type Intake = ReturnType<typeof createIntake>;

export function createIntake({ recovery, places, joins, settings, joinFailed, regressed }: IntakeOptions) {
  const waiting: Waiting[] = [];
  const touched = new Map<string, Scope>();
  let last = Promise.resolve();

  /** One after the other, and a microtask later: what is reported together goes into one write. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    last = last.then(work);
    return last;
  }

  async function write(batch: readonly Waiting[]): Promise<Ingested[]> {
    const incoming = batch.map((one) => one.incoming);
    const { identities, changed } = await places.place(incoming.map(({ failure }) => failure));
    const occurrences = incoming.map(({ failure: _, requestKey, ...rest }, i) => {
      const group = identities[i] as GroupIdentity;
      return { ...rest, group, requestKey: requestKey(group.fingerprint) };
    });
    const ingested = await recovery.ingest(occurrences, settings, batch[0]?.under ?? null);
    for (const one of ingested) if (one.regression) regressed(one);
    const scopes = new Map(changed);
    // A group that is new may be what an older one has become.
    for (const [i, { group }] of occurrences.entries()) {
      const { topic, errorCode } = group;
      if (ingested[i]?.first) scopes.set(scopeOf(topic, errorCode), { topic, errorCode });
    }
    for (const [name, scope] of scopes) if (touched.size < TOUCHED_MAX) touched.set(name, scope);
    await joins.join([...scopes.values()]).catch(joinFailed);
    return ingested;
  }

  async function settle(batch: readonly Waiting[]): Promise<void> {
    if (batch.length === 0) return;
    try {
      const ingested = await write(batch);
      for (const [i, { resolve }] of batch.entries()) resolve(ingested[i] as Ingested);
    } catch (error) {
      // A failure that cannot be written does not refuse the others; a store that is away refuses them all.
      if (batch.length === 1 || mayPass(error)) for (const { reject } of batch) reject(error);
      else for (const each of batch) await settle([each]);
    }
  }

  /** Those that wait longest, as far as they are written under the same leadership or none. */
  function next(): Waiting[] {
    const under = waiting[0]?.under;
    const other = waiting.findIndex((one) => one.under !== under);
    return waiting.splice(0, Math.min(INGEST_MAX, other < 0 ? INGEST_MAX : other));
  }

  async function tidy(): Promise<void> {
    const scopes = [...touched.values()];
    if (scopes.length > 0) await places.align(scopes);
    touched.clear();
    await joins.join(scopes);
  }

  return {
    async take(incoming: Incoming, under: Fence | null = null): Promise<Ingested> {
      if (waiting.length >= WAITING_MAX) {
        const text = `${waiting.length} failures wait to be ingested, more than the engine takes: send them again later.`;
        throw new MakegoodError("store_unavailable", text, { waiting: waiting.length });
      }
      return new Promise((resolve, reject) => {
        waiting.push({ incoming, under, resolve, reject });
        void inTurn(() => settle(next()));
      });
    },
    /** Looks once more at what changed: while this process wrote, another may have written what is the same failure by now. */
    tidy: () => inTurn(() => tidy().catch(joinFailed)),
    /** Waits for what is under way. */
    rest: () => last,
  };
}
