/**
 * One process with everything: the API, the dispatcher and maintenance on one store. It starts in an order in which each
 * part can rely on the ones before it, stops in the opposite one, and never touches signals or the exit code itself.
 */
import { createMakegood, type Makegood } from "../create.ts";
import { errorText } from "../message/errors.ts";
import { type LogSetting, startLog } from "../observe/default-log.ts";
import { type Log, logEvents } from "../observe/log.ts";
import { type Clock, systemClock } from "../platform/clock.ts";
import { auditTopics } from "../presets/audit/topics.ts";
import { startStreams, streamTopics } from "../presets/streams.ts";
import { createAddressGuard } from "../sink/address-guard.ts";
import { checkSink } from "../sink/check-sink.ts";
import { auditOf } from "../store/audit.ts";
import type { Store } from "../store/store.ts";
import type { Worker } from "../worker/worker.ts";
import { type App, createApp } from "./app.ts";
import { type Config, type FileTopic, shownConfig, storeText } from "./config/config.ts";
import { sayRecovery } from "./config/recovery-config.ts";
import { AUDIT_KEPT_DAYS, DAY_MS } from "./config/settings.ts";
import type { Kernel } from "./kernel.ts";
import { type Listening, listen } from "./listen.ts";
import { type OpenedStore, openStore } from "./open-store.ts";
import { VERSION } from "./version.ts";

/** How often a server asks its store whether it would accept: what /health says is at most this old, and one answer. */
const PROBE_MS = 1_000;
/** A store that neither opens nor refuses for so long is away: the process is there without it and says that it is not ready. */
const OPEN_WAIT_MS = 5_000;

export interface ServeOptions {
  readonly config: Config;
  /** As createMakegood takes it; `info` unless said. */
  readonly log?: LogSetting | undefined;
  readonly clock?: Clock | undefined;
  /** Instead of the one that the configuration names; the caller's to dispose of after close(). */
  readonly store?: Store | undefined;
  /** Something broke that only a new process mends; called at most once. */
  readonly failed?: ((reason: string) => void) | undefined;
  readonly headersTimeoutMs?: number | undefined;
  readonly requestTimeoutMs?: number | undefined;
}

export interface RunningServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly mg: Makegood;
  /** Not ready any more, no new connections, the dispatcher drained within `drainMs`, everything closed. Idempotent. */
  close(options?: { readonly drainMs?: number | undefined }): Promise<void>;
}

/** What a running kernel needs to be put behind the API. */
export interface KernelParts {
  readonly config: Pick<Config, "payload_bytes_max" | "sink_allow">;
  readonly mg: Makegood;
  /** Absent: those of the Makegood. */
  readonly log?: Log | undefined;
  readonly clock?: Clock | undefined;
  readonly worker: Worker | null;
  readonly draining: () => boolean;
  /** Which declared topics may be deleted here all the same; absent: none. */
  readonly abandoned?: ((topic: string) => Promise<boolean>) | undefined;
}

export function kernelOf({ config, mg, log, clock, worker, draining, abandoned = async () => false }: KernelParts): Kernel {
  const guard = createAddressGuard({ allow: config.sink_allow });
  return {
    mg,
    recovery: mg.recovery,
    log: log ?? mg.log,
    clock: clock ?? mg.clock,
    version: VERSION,
    payloadBytesMax: config.payload_bytes_max,
    checkSink: (sink) => checkSink(sink, guard),
    dispatcher: () => worker?.status() ?? null,
    draining,
    abandoned,
  };
}

export async function startServer(options: ServeOptions): Promise<RunningServer> {
  const { config, clock = systemClock } = options;
  const { log } = startLog(options.log ?? "info", clock);
  /** What has been started, to be stopped in the opposite order. */
  const undo: (() => Promise<unknown>)[] = [];
  const unwind = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  let draining = false;
  try {
    log.info("starting", { version: VERSION, ...shownConfig(config) });
    const { store, secondary } = options.store
      ? { store: options.store, secondary: null }
      : await ownStore({ ...options, log }, undo);
    const mg = await createMakegood({
      ...makegoodOptions(config, store, clock),
      ...ladderOptions(config, secondary),
      ...withoutStore(config, log, options.failed),
    });
    undo.push(() => mg.close({ drainMs: config.drain_ms }));
    mg.watch.often(PROBE_MS);
    logEvents(mg.events, log);
    sayAudit(config, store, log);
    sayRecovery(config, store, log);
    const worker = mg.work();
    const streams = startStreams({ config, mg, log, clock, patterns: ["*"] });
    undo.push(streams.stop);
    const kernel = kernelOf({ config, mg, log, clock, worker, draining: () => draining });
    const hosts = { bound: config.host, names: config.hosts };
    const app = createApp({ kernel, tokens: config.tokens, anonymous: "local", hosts });
    undo.push(async () => app.close());
    const listening = await startListening(app, options, clock);
    let closing: Promise<void> | undefined;
    const close = (how: { readonly drainMs?: number | undefined } = {}): Promise<void> => {
      draining = true;
      closing ??= closeAll(how.drainMs ?? config.drain_ms, { listening, worker, log }).then(unwind);
      return closing;
    };
    return { url: listening.url, port: listening.port, mg, close, [Symbol.asyncDispose]: () => close() };
  } catch (error) {
    await unwind().catch((failure) => log.error("could not stop cleanly", { error: failure }));
    throw error;
  }
}

async function ownStore(
  { config, log, failed }: ServeOptions & { readonly log: Log },
  undo: (() => Promise<unknown>)[],
): Promise<OpenedStore> {
  const moved = (): void => failed?.("the embedded PostgreSQL came back at another address");
  const opened = await openStore({ config, log, moved });
  undo.push(opened.release);
  return opened;
}

/** What is below the primary store. Short commands go without: they tell the caller that they failed. */
export function ladderOptions(config: Config, secondary: Store | null): Partial<Parameters<typeof createMakegood>[0]> {
  const { journal_dir: directory, journal_bytes_max: bytesMax, seal_key, mask_fields: maskFields, allow_memory } = config;
  const journal = directory === null ? undefined : { directory, bytesMax, sealKey: seal_key ?? undefined };
  return { secondary: secondary ?? undefined, journal, maskFields, allowMemory: allow_memory ?? undefined };
}

/** A process that runs for long starts although its store is away: it says so once, and declares the file's topics when the store comes. */
export function withoutStore(
  config: Config,
  log: Log,
  failed: ((reason: string) => void) | undefined,
): Partial<Parameters<typeof createMakegood>[0]> {
  return {
    startsWithoutStore: true,
    openWithinMs: OPEN_WAIT_MS,
    whenOpen: (store) => declareFileTopics(store, config.topics, log),
    storeRefused: (error) => failed?.(errorText(error)),
    onEvent: (event) => {
      if (event.type !== "store_error" || event.during !== "open" || event.consecutive > 1) return;
      log.warn("store away, retrying", { store: storeText(config), error: event.error });
    },
  };
}

/** The settings of a Makegood that a configuration stands for. */
export function makegoodOptions(config: Config, store: Store, clock: Clock): Parameters<typeof createMakegood>[0] {
  return {
    store,
    clock,
    concurrency: config.concurrency,
    pollMs: config.poll_ms,
    drainMs: config.drain_ms,
    keptMs: config.kept_days * DAY_MS,
    auditKeptMs: config.audit_kept_days === "forever" ? null : config.audit_kept_days * DAY_MS,
    topics: [...auditTopics(auditOf(store)), ...streamTopics(config, clock)],
    sinkAllow: config.sink_allow,
    recovery: config.recovery_options,
    // The server writes the events itself, when it has said that it starts.
    log: "silent",
  };
}

/** What this server does with audit records, where that is not what everybody expects. */
function sayAudit({ audit_kept_days: days }: Config, store: Store, log: Log): void {
  if (auditOf(store) === null) {
    log.warn("POST /api/v1/audit answers 501 needs_postgres: this store keeps no audit records", { store: store.traits.name });
  } else if (days !== "forever" && days < AUDIT_KEPT_DAYS) {
    log.warn("audit records are kept for less than seven years", { audit_kept_days: days });
  }
}

function startListening(app: App, options: ServeOptions, clock: Clock): Promise<Listening> {
  const { config, headersTimeoutMs, requestTimeoutMs } = options;
  return listen({ reply: app.reply, host: config.host, port: config.port, clock, headersTimeoutMs, requestTimeoutMs });
}

/** The file is the authority for what it names; a topic that it named once and no longer does is left alone, and said so. */
export async function declareFileTopics(store: Store, topics: readonly FileTopic[], log: Log): Promise<void> {
  for (const { definition, paused } of topics) {
    const put = await store.topics.put(definition, "file");
    if (put !== "read_only" && paused !== undefined && put.paused !== paused) await store.topics.pause(definition.name, paused);
  }
  const named = new Set(topics.map(({ definition }) => definition.name));
  const left = (await store.topics.list()).filter(({ source, name }) => source === "file" && !named.has(name));
  for (const { name } of left)
    log.warn(
      "a config file once declared this topic and none does now; while no worker serves it, `makegood topics delete` removes it",
      { topic: name },
    );
}

interface Running {
  readonly listening: Listening;
  readonly worker: Worker;
  readonly log: Log;
}

async function closeAll(drainMs: number, { listening, worker, log }: Running): Promise<void> {
  log.info("stopping", { drain_ms: drainMs });
  // Both at once: the budget is one, and answers under way may still accept while attempts finish.
  await Promise.all([listening.close(drainMs), worker.stop({ drainMs })]);
}
