import { createMakegood } from "../../create.js";
import { isTopicPattern } from "../../message/validate.js";
import { logEvents } from "../../observe/log.js";
import { systemClock } from "../../platform/clock.js";
import { shownConfig } from "../../server/config.js";
import { openStore } from "../../server/open-store.js";
import { declareFileTopics, makegoodOptions } from "../../server/serve.js";
import { EXIT } from "../exit-code.js";
import { complain } from "../io.js";
import { untilSignal } from "../until-signal.js";
import { processLog } from "./serve.js";
export function workCommand(program, run) {
    program
        .command("work")
        .description("deliver without serving the API; several may share one store")
        .option("--topics <pattern...>", "only these: names, namespace/* or *", ["*"])
        .action(({ topics }) => run(async ({ io, config }) => {
        const wrong = topics.filter((pattern) => !isTopicPattern(pattern));
        if (wrong.length > 0) {
            complain(io, `makegood: not a topic or a pattern such as audit/*: ${wrong.join(", ")}`);
            return EXIT.usage;
        }
        const { log } = processLog(io, config);
        return untilSignal(io, log, (failed) => work(config, log, topics, failed));
    }));
}
async function work(config, log, topics, failed) {
    log.info("starting to work", { topics, ...shownConfig(config) });
    const moved = () => failed("the embedded PostgreSQL came back at another address");
    const opened = await openStore({ config, log, moved });
    try {
        const mg = await createMakegood(makegoodOptions(config, opened.store, log, systemClock));
        logEvents(mg.events, log);
        await declareFileTopics(mg.store, config.topics, log);
        const worker = mg.work({ topics });
        log.info("working", { owner: worker.owner });
        return {
            async close() {
                await mg.close({ drainMs: config.drain_ms });
                await opened.release();
            },
        };
    }
    catch (error) {
        await opened.release();
        throw error;
    }
}
//# sourceMappingURL=work.js.map