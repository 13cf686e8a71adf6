/**
 * `makegood serve`: the API, the dispatcher and maintenance in one process, until a signal asks it to stop. `makegood work`: the dispatcher
 * alone, for more workers on the same store.
 */
import type { Command } from "commander";
import { createMakegood } from "../../create.ts";
import { isTopicPattern } from "../../message/validate.ts";
import { createLog, type Log, logEvents } from "../../observe/log.ts";
import { systemClock } from "../../platform/clock.ts";
import { startStreams } from "../../presets/streams.ts";
import { type Config, shownConfig, storeText } from "../../server/config/config.ts";
import { openStore } from "../../server/open-store.ts";
import { lastingOptions, type RunningServer, recoveryWords, startServer } from "../../server/serve.ts";
import { VERSION } from "../../server/version.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { complain, type Io, say } from "../io.ts";
import type { Run } from "../run.ts";
import { type Stoppable, untilSignal } from "../until-signal.ts";

interface Options {
  readonly port?: string;
  readonly host?: string;
  readonly dataDir?: string;
}

export function serveCommand(program: Command, run: Run): void {
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
    .action((options: Options) => {
      const flags = { port: options.port, host: options.host, data_dir: options.dataDir };
      return run(({ io, config }) => serve(io, config), { flags });
    });
}

function processLog(io: Io, config: Config): { log: Log; format: "json" | "text" } {
  const format = config.log ?? (io.tty ? "text" : "json");
  const log = createLog({ clock: systemClock, format, level: config.log_level, write: (line) => io.out(line) });
  return { log, format };
}

function serve(io: Io, config: Config): Promise<ExitCode> {
  const { log, format } = processLog(io, config);
  return untilSignal(io, log, config.drain_ms, async (failed) => {
    const server = await startServer({ config, log, failed });
    const first = firstMessage(server.url, config.tokens.length > 0);
    if (format === "text") welcome(io, config, server, first);
    log.info("listening", { url: server.url, ...(format === "json" ? { first_message: first } : {}) });
    return server;
  });
}

/** Two commands that need nothing but this server: a topic that writes to the log, and a message to it. */
function firstMessage(url: string, needsToken: boolean): string[] {
  const headers = `-H 'content-type: application/json'${needsToken ? ' -H "authorization: Bearer $MAKEGOOD_TOKEN"' : ""}`;
  const topic = `curl -X PUT ${url}/api/v1/topics/demo/hello ${headers} -d '{"sink":{"kind":"notify"}}'`;
  const body = `{"topic":"demo/hello","key":"hello-1","payload":{"text":"Hello, Makegood!"}}`;
  return [topic, `curl -X POST ${url}/api/v1/messages ${headers} -d '${body}'`];
}

function welcome(io: Io, config: Config, server: RunningServer, first: readonly string[]): void {
  const { name, survives } = server.mg.store.traits;
  const where = storeText(config);
  const allowed =
    config.sink_allow.length === 0 ? "public addresses only" : `public addresses and ${config.sink_allow.join(", ")}`;
  say(
    io,
    "",
    `Makegood ${VERSION} listens on ${server.url}`,
    `  store   ${name} ${where}; what was accepted survives ${survives.replace("-", " ")}`,
    `  sinks   ${allowed} (MAKEGOOD_SINK_ALLOW)`,
    `  heals   ${recoveryWords(config, server.mg.store)}`,
    `  status  ${server.url}/`,
    "",
    "A first message, to copy and paste; it arrives in this log:",
    "",
    ...first.map((line) => `  ${line}`),
    "",
  );
}

export function workCommand(program: Command, run: Run): void {
  program
    .command("work")
    .description("deliver without serving the API; several may share one store")
    .option("--topics <pattern...>", "only these: names, namespace/* or *", ["*"])
    .action(({ topics }: { topics: string[] }) =>
      run(async ({ io, config }) => {
        const wrong = topics.filter((pattern) => !isTopicPattern(pattern));
        if (wrong.length > 0) {
          complain(io, `makegood: not a topic or a pattern such as audit/*: ${wrong.join(", ")}`);
          return EXIT.usage;
        }
        const { log } = processLog(io, config);
        return untilSignal(io, log, config.drain_ms, (failed) => work(config, log, topics, failed));
      }),
    );
}

async function work(config: Config, log: Log, topics: string[], failed: (reason: string) => void): Promise<Stoppable> {
  log.info("starting to work", { topics, ...shownConfig(config) });
  const opened = await openStore({ config, log, failed });
  try {
    const mg = await createMakegood(lastingOptions(config, opened, { clock: systemClock, log, failed }));
    logEvents(mg.events, log);
    const worker = mg.work({ topics });
    const streams = startStreams({ config, mg, log, clock: systemClock, patterns: topics });
    log.info("working", { owner: worker.owner });
    return {
      async close() {
        await streams.stop();
        await mg.close({ drainMs: config.drain_ms });
        await opened.release();
      },
    };
  } catch (error) {
    await opened.release();
    throw error;
  }
}
