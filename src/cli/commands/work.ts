/**
 * `makegood work`: the dispatcher alone, for more workers on the same store.
 */
import type { Command } from "commander";
import { createMakegood } from "../../create.ts";
import { isTopicPattern } from "../../message/validate.ts";
import { type Log, logEvents } from "../../observe/log.ts";
import { systemClock } from "../../platform/clock.ts";
import { startStreams } from "../../presets/streams.ts";
import { type Config, shownConfig } from "../../server/config/config.ts";
import { openStore } from "../../server/open-store.ts";
import { ladderOptions, makegoodOptions, withoutStore } from "../../server/serve.ts";
import { EXIT } from "../exit-code.ts";
import { complain } from "../io.ts";
import type { Run } from "../run.ts";
import { type Stoppable, untilSignal } from "../until-signal.ts";
import { processLog } from "./serve.ts";

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
  const moved = (): void => failed("the embedded PostgreSQL came back at another address");
  const opened = await openStore({ config, log, moved });
  try {
    const mg = await createMakegood({
      ...makegoodOptions(config, opened.store, systemClock),
      ...ladderOptions(config, opened.secondary),
      ...withoutStore(config, log, failed),
    });
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
