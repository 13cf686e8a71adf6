/**
 * Wiring: the only file that knows every room. It makes the parts, hands each what it needs of the others as plain objects,
 * starts everything it builds and stops it in the opposite order.
 */
import type { Archive } from "./archive/archive.ts";
import { createAcceptance } from "./client/acceptance.ts";
import { createMessageBuilder } from "./client/build-message.ts";
import { type Client, createClient } from "./client/client.ts";
import { createDeliver, type Deliver } from "./client/deliver.ts";
import type { StoreWatch } from "./client/store-watch.ts";
import { startBelowWorkers } from "./create/below-workers.ts";
import { withCarriers } from "./create/carrier-topics.ts";
import { createMaintenanceSwitch, type RetentionOptions, retentionFaults } from "./create/maintenance-jobs.ts";
import { openEvidence } from "./create/open-evidence.ts";
import { type FallbackOptions, openFallback } from "./create/open-fallback.ts";
import { type OpenedRecovery, openRecovery, replayUncarriedOf } from "./create/open-recovery.ts";
import { openVerify, type VerifyOptions } from "./create/open-verify.ts";
import { type BesideStatus, homeFault, openBeside } from "./create/recovery-beside.ts";
import { tick } from "./create/tick.ts";
import { createWatches } from "./create/watches.ts";
import { workOff } from "./create/work-off.ts";
import { onDemand, withoutClose } from "./create/wrapped-sink.ts";
import type { Evidence, EvidenceOptions } from "./evidence/evidence.ts";
import { openLevels } from "./levels/sources.ts";
import type { Jobs } from "./maintenance/by-hand.ts";
import { MakegoodError } from "./message/errors.ts";
import { DEFAULTS } from "./message/limits.ts";
import { issueText, type StandardResult, type StandardSchemaV1 } from "./message/standard-schema.ts";
import { CARRIERS, type TopicRecord } from "./message/topic.ts";
import { WORKER } from "./message/worker-note.ts";
import { type LogSetting, logFault, startLog } from "./observe/default-log.ts";
import { createEvents, type EventListener, type Events, keepEarly } from "./observe/events.ts";
import type { Finding } from "./observe/finding.ts";
import type { LevelSources } from "./observe/level-sources.ts";
import type { Log } from "./observe/log.ts";
import { loadSpans } from "./observe/otel.ts";
import type { TracingOptions } from "./observe/spans.ts";
import { type Clock, systemClock } from "./platform/clock.ts";
import { createIds } from "./platform/ids.ts";
import type { MaintenanceJob } from "./platform/job.ts";
import { type Random, systemRandom } from "./platform/random.ts";
import type { Recovery } from "./recovery/recovery.ts";
import type { RecoveryOptions } from "./recovery/settings.ts";
import { isRecoveryTopic } from "./recovery/topics.ts";
import { type AddressGuard, certificateOf, createAddressGuard } from "./sink/address-guard.ts";
import { checkSink } from "./sink/check-sink.ts";
import { functionSink, type Handler, reject } from "./sink/function.ts";
import type { Sink } from "./sink/sink.ts";
import { faultText, type SinkDeps } from "./sink/sink-kind.ts";
import { createSink } from "./sink/sinks.ts";
import type { Ladder } from "./store/fallback.ts";
import type { Store } from "./store/store.ts";
import type { AnyTopic } from "./topic/topic.ts";
import { TopicTable } from "./topic/topic-table.ts";
import type { Verify } from "./verify/verify.ts";
import { Breakers } from "./worker/breaker/breakers.ts";
import { Dispatcher } from "./worker/dispatcher.ts";
import type { StopOptions, Ticked, TickOptions, WorkedOff, Worker, WorkOffOptions, WorkOptions } from "./worker/worker.ts";

export interface MakegoodOptions extends FallbackOptions, RetentionOptions {
  readonly store: Store;
  readonly topics?: readonly AnyTopic[] | undefined;
  /** Attempts at once in one worker. */
  readonly concurrency?: number | undefined;
  readonly pollMs?: number | undefined;
  readonly drainMs?: number | undefined;
  /** Keys that sign the evidence of audit and provenance, and where it is copied to; absent: unsigned, and in the store only. */
  readonly evidence?: EvidenceOptions | undefined;
  /** Conservation: its witness, and places beside the store. */
  readonly verify?: VerifyOptions | undefined;
  /** CIDR ranges that sinks from the API may dial although they are private. */
  readonly sinkAllow?: readonly string[] | undefined;
  /** Settings of the recovery engine; false: there is none, and nothing is ingested. */
  readonly recovery?: RecoveryOptions | false | undefined;
  /**
   * Beside a store that keeps no records of recovery (Redis): a PostgreSQL store, in a schema of its own, that does. It is opened and closed
   * here; while it is away recovery waits, and nothing else does.
   */
  readonly recoveryHome?: Store | undefined;
  /** Chooses the sink of a topic before anything else does; undefined leaves it to the kernel, null: not served here. */
  readonly sinkFor?: ((record: TopicRecord) => Sink | null | undefined) | undefined;
  /**
   * What a person should know, and what a notify sink without a URL is given. A level: that and what is worse, as text lines on standard
   * error; `warn` unless said. `silent`: nothing, and notices are events only.
   */
  readonly log?: LogSetting | undefined;
  /** Spans and metrics by OpenTelemetry where its API is installed, links only unless said; false: none. */
  readonly tracing?: TracingOptions | false | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  readonly onEvent?: EventListener | undefined;
  /** Further chores, run by the same scheduler and listed with the others. */
  readonly jobs?: readonly MaintenanceJob[] | undefined;
}

export interface Makegood extends Client, AsyncDisposable {
  readonly store: Store;
  readonly events: Events;
  /** The one of the options. */
  readonly log: Log;
  readonly clock: Clock;
  /** Tries the sink at once, and stores what it would not take. Never throws; the result says how durable it is now. */
  readonly deliver: Deliver;
  /** How the fallback ladder stands, and a way to move up at once what waits below. */
  readonly ladder: Pick<Ladder, "status" | "drain" | "put">;
  /** Why messages died, and what to do about it; null where the store keeps no such records. */
  readonly recovery: Recovery | null;
  /** Seals, verifies and proves audit and provenance; null where the store keeps none. */
  readonly evidence: Evidence | null;
  /** The maintenance jobs, to be run by hand. */
  readonly jobs: Jobs;
  /** Records that retention took away; null where the store keeps none. */
  readonly archive: Archive | null;
  /** Whether everything that was accepted is accounted for. */
  readonly verify: Verify;
  /** How the home that was given to recovery beside the store stands; null: there is none. */
  recoveryBeside(): BesideStatus | null;
  /** Whether the primary store has been opened: false while it is away since the start. */
  opened(): boolean;
  /** Resolves when it is open; rejects with what keeps it from being used at all, with the signal's reason, or as `closed`. */
  whenOpened(signal?: AbortSignal): Promise<void>;
  /** How the primary store stands, from the last time it was asked; never waits for it unless told to. */
  readonly watch: Pick<StoreWatch, "state" | "fresh" | "often" | "acknowledge">;
  /** What gauges are read from; a part that knows a number adds its source. */
  readonly levels: LevelSources;
  /** When the certificate at an https URL ends, as it was at the last connection of this process; null: not known. */
  certificateEnds(url: string): number | null;
  /** Everything that is not as it should be, as far as this process knows. */
  findings(): Finding[];
  /** Starts delivering; the first worker also starts maintenance. */
  work(options?: WorkOptions): Worker;
  /** Works until nothing is left that may be attempted now: what is due and not held. Never rejects. */
  workOff(options?: WorkOffOptions): Promise<WorkedOff>;
  /**
   * Works for at most `budgetMs`, for a process that is only there for a while: what is not finished by then is given back uncounted, and
   * no claim is left behind. What goes wrong meanwhile is `error` of the answer.
   */
  tick(options: TickOptions): Promise<Ticked>;
  /** Stops every worker, finishes what is being accepted, closes sinks and store. Idempotent. */
  close(options?: StopOptions): Promise<void>;
}

export async function createMakegood(options: MakegoodOptions): Promise<Makegood> {
  const { store, clock = systemClock, random = systemRandom } = options;
  checkOptions(options);
  const guard = createAddressGuard({ allow: options.sinkAllow });
  checkDeclared(options.topics ?? [], guard);
  const events = createEvents(await loadSpans(options.tracing, clock));
  const early = keepEarly(events);
  const { log, notice } = startLog(options.log, clock, events);
  if (options.onEvent) events.on(options.onEvent);
  const ids = createIds(clock, random);
  const declared = new Map(withCarriers(options.topics ?? []).map((topic) => [topic.name, topic]));
  let recovery: OpenedRecovery | null = null;
  const sinkDeps = { guard, clock, random, log: notice };
  const makeSink = createSinkMaker(options, declared, (record) => recovery?.sinkOf(record), sinkDeps);
  const topics = new TopicTable({ store, clock, events, makeSink });
  const parts = { store, topics, declared, events, ids, clock, random };
  const fallback = await openFallback(options, parts).catch(async (error) => {
    await topics.close();
    if (!options.sharedStore) await store.close().catch(() => {});
    throw error;
  });
  const { ladder, opened, whenOpened } = fallback;
  const watch = createWatches(store, options.secondary ?? null, opened, { clock, events, ladder });
  const acceptance = createAcceptance({ store, clock, random, events, watch: watch.primary });
  const builder = createMessageBuilder({ topics, declared, ids });
  const accepting = { opened, whenOpened, keysMovedUp: ladder.keysMovedUp, acceptance, builder };
  const beside = await openBeside(options, { store, topics, events, notice, ids, clock, random, create: createMakegood });
  const replayUncarried = beside?.replayUncarried ?? replayUncarriedOf(store);
  const client = createClient({ store, ...accepting, events, clock, replayUncarried });
  const inStore = {
    serves: (record: TopicRecord) => {
      topics.learn(record);
      const entry = topics.entry(record.name);
      return entry !== undefined && topics.sink(entry) !== null;
    },
    checkPayload: async (topic: string, payloadText: string) => void (await builder.fromText({ topic, payloadText })),
  };
  recovery = beside ?? openRecovery(options.recovery, { store, ...inStore, events, ids, clock, random });
  const breakers = new Breakers({ topicStore: store.topics, topics, owner: `process-${ids()}`, clock, random, events });
  const direct = createDeliver({ store, ladder, topics, breakers, builder, ids, clock, random, events });
  const pollMs = options.pollMs ?? DEFAULTS.pollMs;
  const lower = { secondary: options.secondary ?? null, pollMs };
  const below = startBelowWorkers({ ...lower, ladder, topics, breakers, events, ids, clock, random });
  const evidence = openEvidence(options.evidence, store, events);
  const verify = openVerify(options, { store, clock, events, random });
  const maintenance = createMaintenanceSwitch(options, {
    ...parts,
    sinkDeps,
    evidence,
    verify,
    recovery: recovery?.upkeep ?? null,
  });
  const workers = new Set<Worker>();
  let closing: Promise<void> | undefined;

  function work(how: WorkOptions = {}): Worker {
    if (closing !== undefined) throw new MakegoodError("closed", "this Makegood was closed: make a new one to work");
    const dispatcher = new Dispatcher({
      store,
      topics,
      breakers,
      events,
      clock,
      random,
      owner: `${WORKER}${ids()}`,
      patterns: how.topics ?? ["*"],
      concurrency: how.concurrency ?? options.concurrency ?? DEFAULTS.concurrency,
      pollMs,
      drainMs: options.drainMs ?? DEFAULTS.drainMs,
    });
    const all = how.maintenance ?? true;
    const holds = [maintenance.hold(all), ...(all && recovery ? [recovery.hold()] : [])];
    const worker: Worker = {
      owner: dispatcher.owner,
      status: () => dispatcher.status(),
      stop: async (stop) => {
        await dispatcher.stop(stop);
        for (const release of holds) await release();
        workers.delete(worker);
      },
      [Symbol.asyncDispose]: () => worker.stop(),
    };
    workers.add(worker);
    how.signal?.addEventListener("abort", () => void worker.stop(), { once: true });
    if (how.signal?.aborted) void worker.stop();
    return worker;
  }

  async function shutDown(stop: StopOptions): Promise<void> {
    watch.stop();
    await Promise.all([...workers].map((worker) => worker.stop(stop)));
    await beside?.close();
    await direct.close();
    await below.close(stop.drainMs ?? options.drainMs ?? DEFAULTS.drainMs);
    await breakers.close();
    await fallback.close();
    await acceptance.close();
    await topics.close();
    await Promise.allSettled([...declared.values()].map(async ({ sink }) => sink?.close?.()));
    if (!options.sharedStore) await store.close();
  }

  const close = (stop: StopOptions = {}): Promise<void> => {
    closing ??= shutDown(stop);
    return closing;
  };
  const findings = () => [watch, verify, maintenance, ...(beside ? [beside] : [])].flatMap((one) => one.findings());
  const certificateEnds = (url: string): number | null => certificateOf(guard, url);
  const known = { watch: watch.primary, findings, certificateEnds, levels: openLevels(options, clock) };
  const status = { opened, whenOpened, ...known, recoveryBeside: () => beside?.status() ?? null };
  const off = { store, topics, ladder, opened, events, clock, work };
  const working: Pick<Makegood, "work" | "workOff" | "tick"> = {
    work,
    workOff: (how = {}) => workOff(off, how),
    tick: (how) => tick(off, how),
  };
  const { jobs, archive } = maintenance;
  const kept = { recovery: recovery?.recovery ?? null, evidence, verify, jobs, archive };
  const whole = { ...client, ...status, ...working, ...kept, deliver: direct.deliver, ladder, store, log, clock };
  return { ...whole, events: early.over(), close, [Symbol.asyncDispose]: () => close() };
}

function checkOptions(options: MakegoodOptions): void {
  const { concurrency, pollMs, drainMs, keptMs, openWithinMs, log, topics = [] } = options;
  const problems: string[] = [logFault(log), homeFault(options), ...retentionFaults(options)].filter((fault) => fault !== null);
  const atLeast = (name: string, value: number | undefined, min: number): void => {
    if (value !== undefined && !(Number.isFinite(value) && value >= min))
      problems.push(`${name} must be a number from ${min} on`);
  };
  atLeast("concurrency", concurrency, 1);
  atLeast("pollMs", pollMs, 10);
  atLeast("drainMs", drainMs, 0);
  atLeast("keptMs", keptMs, 0);
  atLeast("openWithinMs", openWithinMs, 0);
  const names = topics.map(({ name }) => name);
  for (const name of new Set(names.filter((name, i) => names.indexOf(name) !== i)))
    problems.push(`topic ${name} is declared twice`);
  if (problems.length > 0) throw new MakegoodError("invalid_config", problems.join("; "), { problems });
}

/** The same check as for a topic that comes over the API or from a file: its messages must not wait for a sink that can never be. */
function checkDeclared(topics: readonly AnyTopic[], guard: AddressGuard): void {
  for (const { name, definition } of topics) {
    const problems = (["sink", ...CARRIERS] as const).flatMap((field) => {
      const sink = definition[field];
      return sink === undefined ? [] : checkSink(sink, guard, "code").map((fault) => `${field}: ${faultText(fault)}`);
    });
    if (problems.length > 0)
      throw new MakegoodError("invalid_topic", `topic ${name}: ${problems.join("; ")}`, { topic: name, problems });
  }
}

/** A topic's sink in this process: the caller's choice, the declared object or function, else what the record describes. */
function createSinkMaker(
  options: MakegoodOptions,
  declared: ReadonlyMap<string, AnyTopic>,
  ownSink: (record: TopicRecord) => Sink | null | undefined,
  deps: SinkDeps,
): (record: TopicRecord) => Sink | null {
  const made = (record: TopicRecord): Sink | null => {
    const chosen = options.sinkFor?.(record);
    if (chosen !== undefined) return chosen;
    const topic = declared.get(record.name);
    if (topic?.sink) return withoutClose(topic.sink);
    if (topic?.handler) return handlerSink(topic, deps.clock);
    const own = ownSink(record);
    if (own !== undefined) return own;
    return record.sink.kind === "function" ? null : createSink(record.sink, deps);
  };
  return (record) => {
    const sink = made(record);
    return sink && isRecoveryTopic(record.name) ? onDemand(sink) : sink;
  };
}

/** The handler gets what the schema makes of the payload; a payload that no longer fits will never fit. */
function handlerSink({ schema, handler }: AnyTopic, clock: Clock | undefined): Sink {
  if (!handler) throw new MakegoodError("invalid_topic", "a function sink needs its function");
  if (!schema) return functionSink(handler, { clock });
  const { validate } = (schema as StandardSchemaV1)["~standard"];
  const judged: Handler = (value, delivery, context) => {
    const run = (result: StandardResult<unknown>): unknown => {
      if (!result.issues) return handler(result.value, delivery, context);
      const issues = result.issues.map(issueText).map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
      return reject(`the payload does not fit the schema: ${issues.join("; ")}`, { code: "payload_rejected_by_schema" });
    };
    const result = validate(value);
    return result instanceof Promise ? result.then(run) : run(result);
  };
  return functionSink(judged, { clock });
}
