/**
 * `makegood serve`: the API, the dispatcher and maintenance in one process, until a signal asks it to stop.
 */
import type { Command } from "commander";
import { type Log } from "../../observe/log.ts";
import type { Config } from "../../server/config.ts";
import { type Io } from "../io.ts";
import type { Run } from "../run.ts";
export declare function serveCommand(program: Command, run: Run): void;
export declare function processLog(io: Io, config: Config): {
    log: Log;
    format: "json" | "text";
};
