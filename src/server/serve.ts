/** One process with everything: the API, the dispatcher and maintenance on one store. It never touches signals. */

import { type RetentionOptions, retentionFaults } from "../create/maintenance-jobs.ts";
import { createMakegood, type Makegood, type MakegoodOptions } from "../create.ts";
import type { ArchivedClass } from "../maintenance/retention-classes.ts";
import { errorText } from "../message/errors.ts";
import { type LogSetting, startLog } from "../observe/default-log.ts";
import { type Log, logEvents } from "../observe/log.ts";
import { type Clock, systemClock } from "../platform/clock.ts";
import { auditTopics } from "../presets/audit/topics.ts";
import { streamJobs } from "../presets/stream-jobs.ts";
import { startStreams, streamPlaces, streamTopics } from "../presets/streams.ts";
import { auditOf } from "../store/audit.ts";
import type { Store } from "../store/store.ts";
import type { StopOptions } from "../worker/worker.ts";
import { createApp } from "./app.ts";
import { type Config, shownConfig, storeText } from "./config/config.ts";
import { AUDIT_KEPT_DAYS, DAY_MS } from "./config/settings.ts";
import { deadStreamsOf } from "./dead-streams.ts";
import { evidenceOptions } from "./evidence-options.ts";
import { kernelOf, PROBE_MS } from "./kernel.ts";
import { listen, type Timeouts } from "./listen.ts";
import { homeSchema, nothing, type OpenedStore, openStore } from "./open-store.ts";
import { startProbes } from "./probe-port.ts";
import { VERSION } from "./version.ts";

/** A store that neither opens nor refuses for so long is away: the process is there without it and says that it is not ready. */
const OPEN_WAIT_MS = 5_000;

export interface ServeOptions extends Timeouts {
  readonly config: Config;
  /** As createMakegood takes it; `info` unless said. */
  readonly log?: LogSetting | undefined;
  readonly clock?: Clock | undefined;
  /** Instead of the one that the configuration names; the caller's to dispose of after close(). */
  readonly store?: Store | undefined;
  /** Something broke that only a new process mends; called at most once. */
  readonly failed?: ((reason: string) => void) | undefined;
}

export interface RunningServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly mg: Makegood;
  /** Not ready any more, no new connections, the dispatcher drained within `drainMs`, everything closed. Idempotent. */
  close(options?: StopOptions): Promise<void>;
}

type Parts = Pick<ServeOptions, "config" | "store" | "failed"> & { readonly log: Log; readonly clock: Clock };

/** Everything but the API. Each part relies on the ones before it; `stop` takes them in the opposite order. */
export async function startWorking({ config, store, failed, log, clock }: Parts, topics: readonly string[] = ["*"]) {
  const undo: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const opened = store
      ? { store, secondary: null, recoveryHome: undefined, release: nothing }
      : await openStore(config, log, failed);
    undo.push(opened.release);
    const evidence = await evidenceOptions(config, log, clock, true);
    const mg = await createMakegood({ ...lastingOptions(opened, { config, clock, log, failed }), evidence });
    undo.push(() => mg.close({ drainMs: config.drain_ms }));
    logEvents(mg.events, log);
    const worker = mg.work({ topics });
    undo.push(startStreams({ config, mg, log, clock, patterns: topics }).stop);
    await openProbes({ config, log }, mg, undo);
    return { mg, worker, undo, stop };
  } catch (error) {
    await stop().catch((failure) => log.error("could not stop cleanly", { error: failure }));
    throw error;
  }
}

/** Closed first, so that a process that stops is ready no more. */
async function openProbes({ config, log }: Pick<Parts, "config" | "log">, mg: Makegood, undo: (() => unknown)[]): Promise<void> {
  const { probe_port: port, probe_host: host, tokens, hosts } = config;
  if (port === null) return;
  const probes = await startProbes(mg, { port, host, tokens, hosts });
  undo.push(probes.close);
  log.info("probes and metrics are answered", { url: probes.url });
}

export async function startServer({ config, clock = systemClock, ...options }: ServeOptions): Promise<RunningServer> {
  const { log } = startLog(options.log ?? "info", clock);
  log.info("starting", { version: VERSION, ...shownConfig(config) });
  const { mg, worker, undo, stop } = await startWorking({ ...options, config, clock, log });
  mg.watch.often(PROBE_MS);
  sayWhatIsKept(config, mg, log);
  let draining = false;
  const streams = deadStreamsOf(config, mg);
  const kernel = kernelOf({ config, mg, log, clock, worker, streams, draining: () => draining });
  const { host, port, tokens } = config;
  const app = createApp({ kernel, tokens, anonymous: "local", hosts: { bound: host, names: config.hosts } });
  undo.push(app.close);
  const listening = await listen(app.reply, host, port, clock, options).catch(async (error) => {
    await stop().catch((failure) => log.error("could not stop cleanly", { error: failure }));
    throw error;
  });
  const stopAll = async (drainMs: number): Promise<void> => {
    log.info("stopping", { drain_ms: drainMs });
    // Both at once: the budget is one, and answers under way may still accept while attempts finish.
    await Promise.all([listening.close(drainMs), worker.stop({ drainMs })]);
    await stop();
  };
  let closing: Promise<void> | undefined;
  const close: RunningServer["close"] = (how) => {
    draining = true;
    closing ??= stopAll(how?.drainMs ?? config.drain_ms);
    return closing;
  };
  return { url: listening.url, port: listening.port, mg, close, [Symbol.asyncDispose]: () => close() };
}

export function makegoodOptions(config: Config, store: Store, clock: Clock): MakegoodOptions {
  return {
    store,
    clock,
    concurrency: config.concurrency,
    pollMs: config.poll_ms,
    drainMs: config.drain_ms,
    ...retentionOptions(config),
    topics: [...auditTopics(auditOf(store)), ...streamTopics(config, clock)],
    verify: { witness: config.witness, places: streamPlaces(config, store) },
    sinkAllow: config.sink_allow,
    jobs: streamJobs(config.streams, store, clock),
    recovery: config.recovery_options,
    tracing: { propagate: config.trace_propagate },
    // The server writes the events itself, when it has said that it starts.
    log: "silent",
  };
}

/** What a start would refuse. */
export const retentionProblems = (config: Config): string[] => retentionFaults(retentionOptions(config));

function retentionOptions(config: Config): RetentionOptions {
  const ms = (days: number | "forever"): number | null => (days === "forever" ? null : days * DAY_MS);
  return {
    keptMs: config.kept_days * DAY_MS,
    auditKeptMs: ms(config.audit_kept_days),
    retention: {
      dead: ms(config.dead_kept_days),
      occurrences: ms(config.occurrences_kept_days),
      redrive_items: ms(config.redrive_items_kept_days),
      provenance: ms(config.provenance_kept_days),
      replays: ms(config.replays_kept_days),
      usage_turns: ms(config.usage_kept_days),
    },
    replayWindowMs: config.replay_window_days === null ? undefined : config.replay_window_days * DAY_MS,
    archive: config.archive,
    archiveClasses: (config.archive_classes as readonly ArchivedClass[] | null) ?? undefined,
    archiveSealKey: config.seal_key ?? undefined,
  };
}

/** For long: with what is below the primary store, and also while that is away; the file's topics are declared when it comes. */
function lastingOptions({ store, secondary, recoveryHome }: OpenedStore, { config, clock, log, failed }: Parts): MakegoodOptions {
  const { journal_dir: directory, journal_bytes_max: bytesMax, seal_key } = config;
  return {
    ...makegoodOptions(config, store, clock),
    secondary: secondary ?? undefined,
    recoveryHome,
    journal: directory === null ? undefined : { directory, bytesMax, sealKey: seal_key ?? undefined },
    maskFields: config.mask_fields,
    allowMemory: config.allow_memory ?? undefined,
    startsWithoutStore: true,
    openWithinMs: OPEN_WAIT_MS,
    whenOpen: (opened) => declareFileTopics(opened, config.topics, log),
    storeRefused: (error) => failed?.(errorText(error)),
    onEvent: (event) => {
      if (event.type !== "store_error" || event.during !== "open" || event.consecutive > 1) return;
      log.warn("store away, retrying", { store: storeText(config), error: event.error });
    },
  };
}

export function recoveryWords(config: Config, { store, recovery, recoveryBeside }: Makegood): string {
  const { recovery_options: options } = config;
  if (options === false) return "off (MAKEGOOD_RECOVERY)";
  const beside = store.traits.name === "redis" ? "; DATABASE_URL beside it gives recovery a home" : "";
  if (recovery === null) return `off: it needs PostgreSQL, and the store is ${store.traits.name}${beside}`;
  const home = recoveryBeside() === null ? "" : `, in schema ${homeSchema(config)} of DATABASE_URL`;
  const alone = options.autoExecute ? "safe actions run by themselves (RECOVERY_AUTO_EXECUTE)" : "nothing runs without a person";
  return `on${home}; ${alone}`;
}

function sayWhatIsKept(config: Config, mg: Makegood, log: Log): void {
  const { store } = mg;
  const { audit_kept_days, recovery_options: options } = config;
  if (auditOf(store) === null)
    log.warn("POST /api/v1/audit answers 501 needs_postgres: this store keeps no audit records", { store: store.traits.name });
  else if (audit_kept_days !== "forever" && audit_kept_days < AUDIT_KEPT_DAYS)
    log.warn("audit records are kept for less than seven years", { audit_kept_days });
  if (options === false || mg.recovery === null) {
    const recovery = recoveryWords(config, mg);
    log.warn("/api/v1/recovery and /api/v1/redrives answer 501 needs_postgres: recovery is off", { recovery });
  } else {
    const home = mg.recoveryBeside() === null ? {} : { home: homeSchema(config) };
    log.info("recovery is on", { ...home, auto_execute: options.autoExecute, min_confidence: options.minConfidence });
    if (!options.evaluatorEnabled)
      log.warn("nothing is evaluated (RECOVERY_EVALUATOR_ENABLED): failures are grouped, evaluations wait");
  }
}

/** The file is the authority for what it names; a topic that it named once and no longer does is left alone, and said so. */
export async function declareFileTopics(store: Store, topics: Config["topics"], log: Log): Promise<void> {
  for (const { definition, paused } of topics) {
    const put = await store.topics.put(definition, "file");
    if (put !== "read_only" && paused !== undefined && put.paused !== paused) await store.topics.pause(definition.name, paused);
  }
  const named = new Set(topics.map(({ definition }) => definition.name));
  const remedy = "while no worker serves it, `makegood topics delete` removes it";
  for (const { source, name: topic } of await store.topics.list())
    if (source === "file" && !named.has(topic))
      log.warn(`a config file once declared this topic and none does now; ${remedy}`, { topic });
}
