/** Ingests what died here: each death in this process wakes it, and it looks by itself now and then, so a lost event costs time only. */
import { errorText } from "../../message/errors.ts";
import type { Events, MakegoodEvent } from "../../observe/events.ts";
import type { Clock, Timer } from "../../platform/clock.ts";
import { each, type Fence, type JobTurn, led } from "../../platform/job.ts";
import type { Store } from "../../store/store.ts";
import { INGEST_MAX } from "../candidates/candidate-state.ts";
import type { Records } from "../records.ts";
import type { RecoverySettings } from "../settings.ts";
import { NOT_INGESTED, RECOVERY_TOPIC } from "../topics.ts";
import type { DeadFailure } from "./failure.ts";
import { failingOf, incomingOfDead, sinkName } from "./incoming.ts";
import { type Intake, mayPass } from "./intake.ts";

export interface OwnLoopOptions extends Pick<RecoverySettings, "pollMs" | "failingOften" | "appVersion"> {
  readonly prepare: () => Promise<void>;
  readonly recovery: Pick<Records, "uningested">;
  readonly store: Pick<Store, "topics" | "get">;
  readonly intake: Intake;
  readonly events: Events;
  readonly clock: Clock;
}

/** I10: failures that cannot be written; with more of them ingest stops and says why. */
const UNWRITABLE_MAX = 1_000;
/** I10: messages that fail often and are not handed in yet; what does not fit is ingested when it dies. */
const FAILING_MAX = 1_000;
const FAILING_MS = 60_000;
/** Messages die in bursts: those of so long go into one batch. */
const GATHER_MS = 50;
/** Long after a write of another process has ended that was under way with ours. */
const TIDY_MS = 5_000;

const deathOf = ({ id, attempts }: DeadFailure): string => `${id}:${attempts}`;

export function createOwnIngest(options: OwnLoopOptions) {
  const { prepare, recovery, store, intake, events, clock, pollMs, failingOften, appVersion } = options;
  const failing = new Set<string>();
  const unwritable = new Set<string>();

  async function hand(failures: readonly DeadFailure[], under: Fence | null = null): Promise<void> {
    const startedMs = clock.monotonicMs();
    const sinks = new Map<string, string>();
    for (const topic of new Set(failures.map((each) => each.topic))) sinks.set(topic, sinkName(await store.topics.get(topic)));
    const incoming = failures.map((each) => incomingOfDead(each, sinks.get(each.topic) as string, appVersion));
    const taken = await Promise.allSettled(incoming.map((one) => intake.take(one, under)));
    for (const [i, failure] of failures.entries()) {
      const one = taken[i];
      if (one?.status !== "rejected") continue;
      if (mayPass(one.reason) || unwritable.size >= UNWRITABLE_MAX) throw one.reason;
      // It is skipped until the next process tries it: the others go on.
      unwritable.add(deathOf(failure));
      const detail = { message: failure.id, topic: failure.topic, error: errorText(one.reason) };
      events.emit({ type: "lifecycle", what: "recovery_failure_set_aside", detail });
    }
    const ingested = taken.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    const ms = clock.monotonicMs() - startedMs;
    for (const status of ["accepted", "duplicate"] as const) {
      const of = ingested.filter(({ kind }) => kind === status);
      if (of.length === 0) continue;
      const queued = of.filter((each) => each.evaluationQueued).length;
      const detection = status === "duplicate" ? "idempotency_key" : null;
      events.emit({ type: "recovery_ingest", source: "worker", status, count: of.length, queued, ms, detection });
    }
  }

  async function handFailing(): Promise<number> {
    const ids = [...failing].slice(0, INGEST_MAX);
    if (ids.length === 0) return 0;
    await prepare();
    for (const id of ids) failing.delete(id);
    const messages = await Promise.all(ids.map((id) => store.get(id)));
    const failures = messages.map(failingOf).filter((each) => each !== null);
    if (failures.length > 0) await hand(failures);
    return failures.length;
  }

  async function handDead(under: Fence | null = null): Promise<number> {
    await prepare();
    const found = await recovery.uningested(INGEST_MAX + unwritable.size, NOT_INGESTED);
    const dead = found.filter((each) => !unwritable.has(deathOf(each))).slice(0, INGEST_MAX);
    if (dead.length > 0) await hand(dead, under);
    return dead.length;
  }

  /** What happens together wakes once. */
  function heard(concerns: (event: MakegoodEvent & { readonly type: "attempt" }) => boolean) {
    return (now: () => void): (() => void) => {
      let gathering: Timer | undefined;
      const deaf = events.on(
        (event) => {
          if (event.type !== "attempt" || event.topic === RECOVERY_TOPIC || !concerns(event)) return;
          gathering ??= clock.after(GATHER_MS, () => {
            gathering = undefined;
            now();
          });
        },
        { seldom: true },
      );
      return () => {
        deaf();
        gathering?.cancel();
      };
    };
  }

  const isDeath = heard(({ status }) => status === "dead");
  const isFailing = heard(({ status, attempt, id }) => {
    const often = status === "pending" && attempt === failingOften && failing.size < FAILING_MAX;
    if (often) failing.add(id);
    return often;
  });

  // A full batch means that there is more.
  const again = (handed: number, restMs: number): number => (handed >= INGEST_MAX ? 0 : restMs);
  const dead = async (_: AbortSignal, { fence }: JobTurn) => again(await handDead(fence), pollMs);
  const soon = async () => again(await handFailing(), FAILING_MS);
  return {
    /** One look; how many were handed in. */
    step: async () => (await handFailing()) + (await handDead()),
    jobs: [
      led("recovery_ingest", "puts what died into its groups", pollMs, dead, { hear: isDeath }),
      each("recovery_failing", "puts what fails often into its groups before it dies", FAILING_MS, soon, { hear: isFailing }),
      each("recovery_tidy", "joins groups that became one, of failures that this process took in", TIDY_MS, intake.tidy),
    ],
  };
}
