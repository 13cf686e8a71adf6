/** `makegood serve` and `makegood work`, until a signal: the first one stops in order, a second one at once. */
import { constants } from "node:os";
import { errorText } from "../../message/errors.ts";
import { isTopicPattern } from "../../message/validate.ts";
import { createLog, type Log } from "../../observe/log.ts";
import { systemClock, within } from "../../platform/clock.ts";
import { type Config, shownConfig, storeText } from "../../server/config/config.ts";
import { declareFileTopics, type RunningServer, recoveryWords, startServer, startWorking } from "../../server/serve.ts";
import { VERSION } from "../../server/version.ts";
import type { AddCommand, CommandContext } from "../conversation.ts";
import { complain, EXIT, type ExitCode, type Io, Stop, say, tell } from "../io.ts";

const serving: AddCommand = (program, run) =>
  program
    .command("serve")
    .description("run the API, the dispatcher and maintenance in one process")
    .option("--port <port>", "instead of MAKEGOOD_PORT (4600)")
    .option("--host <address>", "instead of MAKEGOOD_HOST (127.0.0.1)")
    .option("--data-dir <path>", "instead of MAKEGOOD_DATA_DIR (./.makegood)")
    .addHelpText(
      "after",
      "\nSIGTERM drains and exits 0. With DATABASE_URL it uses that server, with MAKEGOOD_STORE=redis that of REDIS_URL, else an embedded PostgreSQL.",
    )
    .action(({ dataDir, ...flags }) => run(serve, { flags: { ...flags, data_dir: dataDir } }));

const working: AddCommand = (program, run) =>
  program
    .command("work")
    .description("deliver without serving the API; several may share one store")
    .option("--topics <pattern...>", "only these: names, namespace/* or *", ["*"])
    .option("--batch-size <count>", "attempts at once, instead of MAKEGOOD_CONCURRENCY")
    .option("--once", "deliver what is due, say how much that was, and end; for a timer")
    .option("--probe-port <port>", "instead of MAKEGOOD_PROBE_PORT: /livez, /readyz and /metrics there; absent: nowhere")
    .action(({ topics, once, batchSize, probePort }) =>
      run(async (context) => (once ? workOnce : work)(context, topicPatterns(topics)), {
        flags: { concurrency: batchSize, probe_port: probePort },
      }),
    );

export const commands = [serving, working];

const formatOf = (io: Io, config: Config): "json" | "text" => config.log ?? (io.tty ? "text" : "json");

function serve(context: CommandContext): Promise<ExitCode> {
  const { io, config } = context;
  return untilSignal(context, async (log, failed) => {
    const server = await startServer({ config, log, failed });
    const first = firstMessage(server.url, config.tokens.length > 0);
    const forPeople = formatOf(io, config) === "text";
    if (forPeople) welcome(io, config, server, first);
    log.info("listening", { url: server.url, ...(forPeople ? {} : { first_message: first }) });
    return server;
  });
}

function firstMessage(url: string, needsToken: boolean): string[] {
  const headers = `-H 'content-type: application/json'${needsToken ? ' -H "authorization: Bearer $MAKEGOOD_TOKEN"' : ""}`;
  const topic = `curl -X PUT ${url}/api/v1/topics/demo/hello ${headers} -d '{"sink":{"kind":"notify"}}'`;
  const body = `{"topic":"demo/hello","key":"hello-1","payload":{"text":"Hello, Makegood!"}}`;
  return [topic, `curl -X POST ${url}/api/v1/messages ${headers} -d '${body}'`];
}

function welcome(io: Io, config: Config, server: RunningServer, first: readonly string[]): void {
  const { name, survives } = server.mg.store.traits;
  const allowed = config.sink_allow.length === 0 ? "only" : `and ${config.sink_allow.join(", ")}`;
  say(
    io,
    "",
    `Makegood ${VERSION} listens on ${server.url}`,
    `  store   ${name} ${storeText(config)}; what was accepted survives ${survives.replace("-", " ")}`,
    `  sinks   public addresses ${allowed} (MAKEGOOD_SINK_ALLOW)`,
    `  heals   ${recoveryWords(config, server.mg)}`,
    `  status  ${server.url}/`,
    "",
    "A first message, to copy and paste; it arrives in this log:",
    "",
    ...first.map((line) => `  ${line}`),
    "",
  );
}

function topicPatterns(topics: string[]): string[] {
  const wrong = topics.filter((pattern) => !isTopicPattern(pattern));
  if (wrong.length > 0) throw new Stop(`not a topic or a pattern such as audit/*: ${wrong.join(", ")}`);
  return topics;
}

async function workOnce(context: CommandContext, topics: string[]): Promise<ExitCode> {
  const { io, config } = context;
  const { openLocal, warnings } = await import("../local.ts");
  const { mg, close } = await openLocal(io, config, "up");
  try {
    await declareFileTopics(mg.store, config.topics, warnings(io));
    const { error, ...counts } = await mg.workOff({ topics });
    if (error !== null) throw error;
    tell(context, counts, () => say(io, `${counts.attempts} attempts: ${counts.delivered} delivered, ${counts.dead} dead`));
    return EXIT.ok;
  } finally {
    await close();
  }
}

async function work(context: CommandContext, topics: string[]): Promise<ExitCode> {
  const { config } = context;
  return untilSignal(context, async (log, failed) => {
    log.info("starting to work", { topics, ...shownConfig(config) });
    const { worker, stop } = await startWorking({ config, log, failed, clock: systemClock }, topics);
    log.info("working", { owner: worker.owner });
    return { close: stop };
  });
}

/** npm and a terminal may both pass on the same Ctrl-C: that is one signal, not two. */
const SAME_SIGNAL_MS = 500;

/** Beyond the drain: to write what finished, and to close everything. A database that is silent answers none of it. */
const CLOSE_MS = 15_000;

async function untilSignal(
  { io, config }: CommandContext,
  start: (log: Log, fail: (reason: string) => void) => Promise<{ close(): Promise<void> }>,
): Promise<ExitCode> {
  const log = createLog({ clock: systemClock, format: formatOf(io, config), level: config.log_level, write: io.out });
  let failure: string | null = null;
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  let firstAtMs: number | null = null;
  const onSignal = (signal: NodeJS.Signals): void => {
    const nowMs = systemClock.monotonicMs();
    if (firstAtMs === null) {
      firstAtMs = nowMs;
      log.info("a signal asks to stop", { signal });
      end();
    } else if (nowMs - firstAtMs > SAME_SIGNAL_MS) {
      log.warn("a second signal: stopping at once", { signal });
      process.exit(128 + constants.signals[signal]);
    }
  };
  const onCrash = (error: unknown): void => {
    log.error("an uncaught error: the process ends", { error });
    complain(io, `makegood: ${errorText(error)}`);
    process.exit(EXIT.failed);
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  process.on("uncaughtException", onCrash).on("unhandledRejection", onCrash);
  try {
    const running = await start(log, (reason) => {
      failure = reason;
      log.error("stopping because something broke", { reason });
      end();
    });
    await ended;
    // One budget for all of it: the timeouts of one silent store after the other must not add up to a kill by the supervisor.
    const budgetMs = config.drain_ms + CLOSE_MS;
    const closing = running.close().then(() => true);
    if ((await within(systemClock, closing, budgetMs)) === null)
      log.warn("not everything was closed in time: what was not written comes back when its lease ends", { budget_ms: budgetMs });
  } catch (error) {
    failure = errorText(error);
  }
  if (failure !== null) throw new Stop(failure, EXIT.failed);
  log.info("stopped");
  return EXIT.ok;
}
