/**
 * Recovery for a store that keeps none of its records: an inner Makegood on PostgreSQL in which a message stands for each dead letter of the
 * primary (decision 0033). The home may be away, at the start or later: then recovery waits, and nothing else does.
 */
import type { ReplayUncarried } from "../client/intervene.ts";
import type { Makegood, MakegoodOptions } from "../create.ts";
import { startMaintenance } from "../maintenance/maintenance.ts";
import { errorText, isMakegoodError, MakegoodError } from "../message/errors.ts";
import { DEFAULTS } from "../message/limits.ts";
import type { Events } from "../observe/events.ts";
import type { Finding } from "../observe/finding.ts";
import { type Clock, within } from "../platform/clock.ts";
import { once } from "../platform/once.ts";
import type { Random } from "../platform/random.ts";
import { createBringOver } from "../recovery/beside/bring-over.ts";
import { createMirrors } from "../recovery/beside/mirror-sql.ts";
import { createReplaySink } from "../recovery/beside/replay-sink.ts";
import { createDeclare, topicsBeside } from "../recovery/beside/topics-beside.ts";
import type { Recovery } from "../recovery/recovery.ts";
import { carriedAmong, carriedError } from "../recovery/redrive/select-sql.ts";
import { isRecoveryTopic } from "../recovery/topics.ts";
import { type Home, homeOf } from "../store/home.ts";
import type { Store } from "../store/store.ts";
import type { TopicTable } from "../topic/topic-table.ts";
import type { Worker } from "../worker/worker.ts";
import { withCarriers } from "./carrier-topics.ts";
import { createHold, type OpenedRecovery, openRecovery } from "./open-recovery.ts";

export interface BesideParts {
  readonly store: Store;
  readonly topics: TopicTable;
  readonly events: Events;
  readonly notice: (line: string) => void;
  readonly ids: () => string;
  readonly clock: Clock;
  readonly random: Random;
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

export interface OpenedBeside extends OpenedRecovery {
  readonly replayUncarried: ReplayUncarried;
  status(): BesideStatus;
  findings(): Finding[];
  close(): Promise<void>;
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

/** Null where the store keeps recovery's records itself, nobody gave them a home, or nobody wants them. */
export async function openBeside(options: MakegoodOptions, parts: BesideParts): Promise<OpenedBeside | null> {
  const { store: primary, events, clock, random, ids } = parts;
  const { recoveryHome, recovery: settings } = options;
  if (!recoveryHome || settings === false) return null;
  const home = homeOf(recoveryHome) as Home;
  const mirrors = createMirrors(home);
  const standing = createStanding(events, clock);
  const topics = topicsBeside(primary.topics, recoveryHome.topics);
  const engine = openRecovery(settings, {
    store: recoveryHome,
    // What fails often is read where it fails.
    reads: { topics, get: (id, how) => primary.get(id, how) },
    serves: ({ name }) => {
      const entry = parts.topics.entry(name);
      return isRecoveryTopic(name) || (entry !== undefined && parts.topics.sink(entry) !== null);
    },
    checkPayload: () => {},
    ...{ events: quietly(events), ids, clock, random },
  }) as OpenedRecovery;
  const { origin } = engine.recovery;
  const replaySink = createReplaySink({ primary, here: recoveryHome, mirrors, origin, clock });
  const inner = await parts.create({
    store: recoveryHome,
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
  const declare = createDeclare(primary.topics, recoveryHome.topics);
  const over = createBringOver({ primary, here: recoveryHome, mirrors, declare, events, ids, clock });
  const own = () => ownHome(primary, recoveryHome, ids);
  let stop: (() => Promise<void>) | undefined;
  const status = () => ({ ...standing.status(), reachable: inner.opened() && standing.status().error === null });
  /** What is asked of both stores does not wait for the home. */
  const orElse = async <T>(otherwise: T, work: () => Promise<T>): Promise<T> => {
    try {
      return status().reachable ? await work() : otherwise;
    } catch (error) {
      if (isMakegoodError(error) && error.retryable) return otherwise;
      throw error;
    }
  };
  return {
    recovery: { ...engine.recovery, ...refusals(engine.recovery), origin: (id) => orElse(null, () => origin(id)) },
    sinkOf: () => undefined,
    hold: createHold(
      () => {
        stop = atWork({ ...parts, inner, engine, over, declare, own, standing });
      },
      async () => stop?.(),
    ),
    replayUncarried: async (one) => {
      const [carried] = await orElse([], () => carriedAmong(home.s, home.read("look for copies"), [one.id]));
      if (carried) throw carriedError(carried);
      return primary.intervene(one);
    },
    status,
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

/** A home that is away is one finding, and no error of the primary store. */
function quietly(events: Events): Events {
  return {
    get heard() {
      return events.heard;
    },
    emit: (event) => event.type !== "store_error" && events.emit(event),
    on: events.on,
  };
}

/** Two primaries in one home would take each other's dead letters for gone. */
async function ownHome(primary: Store, home: Store, ids: () => string): Promise<void> {
  const { owner } = await primary.lead("recovery_home", ids(), OWNED_MS);
  await primary.lead("recovery_home", owner, OWNED_MS);
  if ((await home.lead("recovery_primary", owner, OWNED_MS)).held) return;
  const text = "the home of recovery belongs to another store: give each a schema of its own (MAKEGOOD_SCHEMA)";
  throw new MakegoodError("invalid_config", text);
}

function createStanding(events: Events, clock: Clock) {
  const errors = new Map<string, string>();
  let sinceMs: number | null = null;
  let behind: number | null = null;
  const status = () => ({ error: [...errors.values()][0] ?? null, sinceMs, behind });
  return {
    status,
    known: (found: number) => {
      behind = Math.max(0, found);
    },
    /** Runs it and remembers whether it could be done. */
    async tried(what: string, work: () => Promise<void>): Promise<boolean> {
      const error = await work().then(() => null, errorText);
      const before = errors.size;
      if (error === null) errors.delete(what);
      else errors.set(what, error);
      if (errors.size === 0) sinceMs = null;
      else sinceMs ??= clock.wallMs();
      if (before === 0 && error !== null) events.emit({ type: "lifecycle", what: "recovery_home_away", detail: { error } });
      if (before > 0 && errors.size === 0) events.emit({ type: "lifecycle", what: "recovery_home_back" });
      return error === null;
    },
    findings(): Finding[] {
      const { error } = status();
      const left = behind ? `; ${behind} dead letters wait to be taken in` : "";
      const reason = `recovery beside the store cannot go on (${error}): failures are not looked at, deliveries do not need it${left}`;
      return error === null ? [] : [{ what: "recovery_home_away", topic: null, reason, sinceMs, severity: "degraded" }];
    },
  };
}

/** What the primary cannot do is refused before it begins. */
function refusals({ startRedrive }: Recovery): Pick<Recovery, "edit" | "startRedrive"> {
  const refuse = (what: string): never => {
    throw new MakegoodError("needs_postgres", `${what}: that needs PostgreSQL as the store of messages`);
  };
  return {
    edit: async () => refuse("a message of this store keeps its payload"),
    startRedrive: async (request, actor) =>
      request.mode === "reopen" ? refuse("what this store resolved stays so") : startRedrive(request, actor),
  };
}

interface AtWork extends BesideParts {
  readonly inner: Makegood;
  readonly engine: OpenedRecovery;
  readonly over: ReturnType<typeof createBringOver>;
  readonly declare: ReturnType<typeof createDeclare>;
  readonly own: () => Promise<void>;
  readonly standing: ReturnType<typeof createStanding>;
}

/** The inner worker begins with the first look that shows that the home is ours. */
function atWork({ store, events, clock, random, ids, inner, engine, over, declare, own, standing }: AtWork): () => Promise<void> {
  const heard = new Set<string>();
  let working: { readonly worker: Worker; readonly release: () => Promise<void> } | null = null;

  const begin = once(async () => {
    const { error } = inner.watch.state();
    if (!inner.opened()) throw new MakegoodError("store_unavailable", error ?? "it is not open yet");
    await own();
    await declare("all");
    working = { worker: inner.work(), release: engine.hold() };
  });

  async function look(): Promise<number> {
    const done = await standing.tried("look", async () => {
      await begin();
      await inner.store.check();
      const ids = [...heard];
      heard.clear();
      await over.look(ids);
    });
    return done ? DEFAULTS.pollMs : AGAIN_MS;
  }

  async function walk(signal: AbortSignal): Promise<number> {
    const startedMs = clock.monotonicMs();
    const done = await standing.tried("walk", async () => {
      await begin();
      await own();
      await declare("all");
      standing.known(await over.behind());
      await over.walk(signal);
      standing.known(await over.behind());
    });
    return done ? Math.max(WALK_MS, WALK_SHARE * (clock.monotonicMs() - startedMs)) : AGAIN_MS;
  }

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

  const maintenance = startMaintenance({
    ...{ store, clock, random, events, owner: `recovery-${ids()}`, name: "recovery_beside" },
    jobs: [
      { name: "recovery_beside", everyMs: DEFAULTS.pollMs, where: "each", hear, run: look },
      { name: "recovery_beside_walk", everyMs: WALK_MS, where: "leader", firstEach: true, run: walk },
    ],
  });
  return async () => {
    const stop = async () => {
      await maintenance.stop();
      await working?.release();
      await working?.worker.stop({ drainMs: STOP_MS });
      working = null;
    };
    await within(clock, stop(), 2 * STOP_MS);
  };
}
