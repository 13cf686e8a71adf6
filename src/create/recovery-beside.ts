/**
 * Recovery for a store that keeps none of its records: an inner Makegood on PostgreSQL in which a message stands for each dead letter of the
 * primary (decision 0033). The home may be away, at the start or later: then recovery waits, and nothing else does.
 */
import type { ReplayUncarried } from "../client/intervene.ts";
import type { Makegood, MakegoodOptions } from "../create.ts";
import { startMaintenance } from "../maintenance/maintenance.ts";
import { isMakegoodError, MakegoodError } from "../message/errors.ts";
import { DEFAULTS } from "../message/limits.ts";
import type { Events, MakegoodEvent } from "../observe/events.ts";
import type { Finding } from "../observe/finding.ts";
import { within } from "../platform/clock.ts";
import { each, type JobTurn, led, type MaintenanceJob } from "../platform/job.ts";
import { once } from "../platform/once.ts";
import { type BringOver, createBringOver } from "../recovery/beside/bring-over.ts";
import { createMirrors } from "../recovery/beside/mirror-sql.ts";
import { createReplaySink } from "../recovery/beside/replay-sink.ts";
import { createDeclare, topicsBeside } from "../recovery/beside/topics-beside.ts";
import type { Recovery } from "../recovery/recovery.ts";
import { carriedAmong, carriedError } from "../recovery/redrive/select-sql.ts";
import { isRecoveryTopic } from "../recovery/topics.ts";
import { type Home, homeOf } from "../store/home.ts";
import type { TopicTable } from "../topic/topic-table.ts";
import { withCarriers } from "./carrier-topics.ts";
import { createHold, type OpenedRecovery, openRecovery, type RecoveryParts } from "./open-recovery.ts";

export interface BesideParts extends Pick<RecoveryParts, "store" | "events" | "ids" | "clock" | "random"> {
  readonly topics: TopicTable;
  readonly notice: (line: string) => void;
  readonly create: (options: MakegoodOptions) => Promise<Makegood>;
}

/** How recovery beside a primary stands, as this process last saw it. */
export interface BesideStatus {
  readonly reachable: boolean;
  readonly error: string | null;
  readonly sinceMs: number | null;
  /** Open dead letters of the primary that recovery does not know yet; null: nobody has looked. */
  readonly behind: number | null;
}

/** The start goes on without a home that takes longer. */
const OPEN_MS_MAX = 5_000;
const WALK_MS = 5_000;
/** A walk over a million dead letters takes a while: no more than a twentieth of the time is spent on it. */
const WALK_SHARE = 20;
const AGAIN_MS = 2_000;
const GATHER_MS = 50;
const STOP_MS = 5_000;
/** I10: what does not fit is found by the next walk. */
const HEARD_MAX = 1_000;
/** A home that its primary has not asked for so long may be another's. */
const OWNED_MS = 86_400_000;

const isAway = (error: unknown): boolean => isMakegoodError(error) && error.retryable;

/** Null where the store keeps recovery's records itself, nobody gave them a home, or nobody wants them. */
export async function openBeside(options: MakegoodOptions, parts: BesideParts) {
  const { store: primary, events, clock, random, ids } = parts;
  const { recoveryHome: here, recovery: settings } = options;
  if (!here || settings === false) return null;
  const home = homeOf(here) as Home;
  const mirrors = createMirrors(home);
  const engine = openRecovery(settings, {
    ...{ store: here, ids, clock, random, events: quietly(events) },
    // What fails often is read where it fails.
    reads: { topics: topicsBeside(primary.topics, here.topics), get: (id) => primary.get(id) },
    serves: ({ name }) => {
      const entry = parts.topics.entry(name);
      return isRecoveryTopic(name) || (entry !== undefined && parts.topics.sink(entry) !== null);
    },
    checkPayload: () => {},
  }) as OpenedRecovery;
  const { origin, startRedrive } = engine.recovery;
  const replaySink = createReplaySink(primary, here, mirrors, origin);
  const inner = await parts.create({
    store: here,
    topics: withCarriers(options.topics ?? []).filter(({ name }) => isRecoveryTopic(name)),
    recovery: false,
    sinkFor: (record) => (isRecoveryTopic(record.name) ? engine.sinkOf(record) : replaySink),
    startsWithoutStore: "even-refused",
    openWithinMs: Math.min(options.openWithinMs ?? OPEN_MS_MAX, OPEN_MS_MAX),
    ...{ clock, random, sinkAllow: options.sinkAllow, pollMs: options.pollMs, keptMs: options.keptMs, log: "silent" },
    onEvent: (event) => {
      if (event.type === "lifecycle" && event.what === "notice") parts.notice(String(event.detail?.line));
    },
  });
  const standing = createStanding(parts, inner);
  const declare = createDeclare(primary.topics, here.topics);
  const over = createBringOver(primary, here, mirrors, declare, parts);
  /** What is asked of both stores does not wait for the home. */
  const orElse = async <T>(otherwise: T, work: () => Promise<T>): Promise<T> => {
    try {
      return standing.status().reachable ? await work() : otherwise;
    } catch (error) {
      if (isAway(error)) return otherwise;
      throw error;
    }
  };
  let known: number | null = null;
  const survey = async (): Promise<void> => {
    known = await orElse(known, mirrors.openCount);
    if (known !== null) standing.behind(Math.max(0, (await over.openThere()) - known));
    await declare();
  };
  const replayUncarried: ReplayUncarried = async (one) => {
    const [carried] = await orElse([], async () => {
      const id = (await mirrors.ofPrimary([one.id])).get(one.id)?.messageId ?? one.id;
      return carriedAmong(home.s, home.read("look for copies"), [id]);
    });
    if (carried) throw carriedError({ ...carried, messageId: one.id });
    return primary.intervene(one);
  };
  const work = createWork(parts, inner, standing, over, survey);
  return {
    recovery: {
      ...engine.recovery,
      edit: () => refuse("a message of this store keeps its payload"),
      startRedrive: async (...[request, actor]: Parameters<Recovery["startRedrive"]>) =>
        request.mode === "reopen" ? refuse("what this store resolved stays so") : startRedrive(request, actor),
      origin: (id: string) => orElse(null, () => origin(id)),
    },
    sinkOf: () => undefined,
    hold: createHold(() => work.start(engine.hold)),
    upkeep: { store: here, jobs: [...engine.upkeep.jobs, ...work.jobs], beside: inner.jobs },
    replayUncarried,
    status: standing.status,
    findings: standing.findings,
    close: () => inner.close({ drainMs: STOP_MS }),
  };
}

/** What is wrong with the option; null: nothing. */
export function homeFault({ store, recoveryHome }: MakegoodOptions): string | null {
  if (!recoveryHome) return null;
  const fits = homeOf(store) === null && homeOf(recoveryHome) !== null && store.traits.processes === "many";
  return fits ? null : "recoveryHome must be a PostgreSQL store beside a Redis store: PostgreSQL needs none, memory has none";
}

/** A home that is away is one finding, and no error of the primary store. `during`: only of this. */
function quietly(events: Events, during?: string): Events {
  const isQuiet = (event: MakegoodEvent) => event.type === "store_error" && (during === undefined || event.during === during);
  const emit = (event: MakegoodEvent) => isQuiet(event) || events.emit(event);
  return Object.create(events, { emit: { value: emit } });
}

/** What the primary cannot do is refused before it begins. */
async function refuse(what: string): Promise<never> {
  throw new MakegoodError("needs_postgres", `${what}: that needs PostgreSQL as the store of messages`);
}

type Standing = ReturnType<typeof createStanding>;

/** Whether the home can be used: as the watch of the inner store says, and if it is ours. */
function createStanding({ store: primary, events, ids }: BesideParts, inner: Makegood) {
  let foreign: string | null = null;
  let behind: number | null = null;
  let away = false;
  const status = (): BesideStatus => {
    const { error: refused, sinceMs } = inner.watch.state();
    const error = refused ?? foreign;
    return { reachable: error === null, error, sinceMs: error === null ? null : sinceMs, behind };
  };
  return {
    status,
    behind: (found: number): void => {
      behind = found;
    },
    /** Two primaries in one home would take each other's dead letters for gone. */
    async own(): Promise<void> {
      const { owner } = await primary.lead("recovery_home", ids(), OWNED_MS);
      await primary.lead("recovery_home", owner, OWNED_MS);
      const { held } = await inner.store.lead("recovery_primary", owner, OWNED_MS);
      const text = "the home of recovery belongs to another store: give each a schema of its own (MAKEGOOD_SCHEMA)";
      foreign = held ? null : text;
      if (!held) throw new MakegoodError("invalid_config", text);
    },
    /** When it goes and when it comes back. */
    tell(): void {
      const { error } = status();
      if (away === (error !== null)) return;
      away = error !== null;
      const what = away ? "recovery_home_away" : "recovery_home_back";
      events.emit({ type: "lifecycle", what, detail: away ? { error } : undefined });
    },
    findings(): Finding[] {
      const { error, sinceMs } = status();
      const left = behind ? `; ${behind} dead letters wait to be taken in` : "";
      const reason = `recovery beside the store cannot go on (${error}): failures are not looked at, deliveries do not need it${left}`;
      return error === null ? [] : [{ what: "recovery_home_away", topic: null, reason, sinceMs, severity: "degraded" }];
    },
  };
}

/** Its jobs, which may also be run by hand; and at work with an inner worker, from the first step that shows that the home is ours. */
function createWork(parts: BesideParts, inner: Makegood, standing: Standing, over: BringOver, survey: () => Promise<void>) {
  const { events, clock } = parts;
  const heard = new Set<string>();

  const ready = async (): Promise<void> => {
    if (!inner.opened()) throw new MakegoodError("store_unavailable", "the home of recovery is not open yet");
    await standing.own();
  };
  let begin = ready;

  /** At most `1 / share` of the time. While the home is away that is told, and is no error of the step. */
  const step =
    (everyMs: number, share: number, work: (signal: AbortSignal, turn: JobTurn) => Promise<void>): MaintenanceJob["run"] =>
    async (signal: AbortSignal, turn: JobTurn): Promise<number> => {
      standing.tell();
      try {
        await begin();
        const startedMs = clock.monotonicMs();
        await work(signal, turn);
        return Math.max(everyMs, share * (clock.monotonicMs() - startedMs));
      } catch (error) {
        await inner.watch.fresh(0, STOP_MS);
        if (standing.status().reachable) throw error;
        return AGAIN_MS;
      }
    };

  async function look(): Promise<void> {
    const some = [...heard];
    heard.clear();
    await over.look(some).catch((error) => {
      if (isAway(error)) for (const id of some) heard.add(id);
      throw error;
    });
  }

  const walk = (signal: AbortSignal, { fence }: JobTurn) => standing.own().then(() => over.walk(signal, fence));

  function hear(now: () => void): () => void {
    return events.on(
      (event) => {
        const concerns = event.type === "intervened" || (event.type === "attempt" && event.status === "dead");
        if (!concerns || heard.size >= HEARD_MAX) return;
        heard.add(event.id);
        // Messages die in bursts.
        if (heard.size === 1) clock.after(GATHER_MS, now, true);
      },
      { seldom: true },
    );
  }

  const [looks, counts] = [step(DEFAULTS.pollMs, 0, look), step(WALK_MS, WALK_SHARE, survey)];
  const walks = step(WALK_MS, WALK_SHARE, walk);
  const jobs = [
    each("recovery_beside", "brings over what this process saw die, and what a person did to it", WALK_MS, looks, { hear }),
    each("recovery_beside_survey", "counts how many dead letters recovery does not know yet", WALK_MS, counts),
    led("recovery_beside_walk", "compares the dead letters of both stores, and brings over what is missing", WALK_MS, walks),
  ];
  return {
    jobs,
    start: (hold: OpenedRecovery["hold"]) => {
      let rest = async (): Promise<void> => {};
      begin = once(async () => {
        await ready();
        const worker = inner.work();
        const release = hold();
        rest = async () => {
          await release();
          await worker.stop({ drainMs: STOP_MS });
        };
      });
      const seldom = inner.watch.often(DEFAULTS.pollMs);
      // Led in the home: there its writes are, and there their fence is asked.
      const home = {
        store: inner.store,
        owner: `recovery-${parts.ids()}`,
        name: "recovery_beside",
        events: quietly(events, "lead"),
      };
      const maintenance = startMaintenance({ ...home, clock, random: parts.random, jobs });
      const stop = async () => {
        await maintenance.stop();
        begin = ready;
        await rest();
      };
      return async () => {
        seldom();
        await within(clock, stop(), 2 * STOP_MS);
      };
    },
  };
}
