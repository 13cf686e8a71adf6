/**
 * Starts one postmaster and waits until it serves, or tells why it does not. The server is detached: it has a session of its
 * own, so that a Ctrl-C meant for us does not reach it before our work is settled, and it outlives us when we are killed.
 * What durability needs is on its command line, where no configuration file can turn it off.
 */
import { spawn } from "node:child_process";
import { errorText } from "../../../message/errors.js";
import { sleep } from "../../../platform/clock.js";
import { serves } from "./connection.js";
import { findServer } from "./find-server.js";
import { SERVER_ENV } from "./run-program.js";
import { openLog, readLog } from "./server-log.js";
const POLL_MS = 15;
/** Crash recovery reads the log since the last checkpoint; that can take minutes, but not for ever. */
export const SERVE_MS_MAX = 600_000;
export async function launch(context, port, signal) {
    const { directory, clock } = context;
    const log = await openLog(directory);
    let ended;
    try {
        const child = spawn(context.binaries.postgres, commandLine(directory, port), {
            ...directory.user,
            cwd: directory.path,
            env: SERVER_ENV,
            detached: true,
            stdio: ["ignore", log.fd, log.fd],
        });
        child.on("error", (error) => {
            ended = errorText(error);
        });
        child.on("exit", (code, killedBy) => {
            ended = `it ended with ${killedBy ?? code}`;
            context.onExit();
        });
        child.unref();
        const deadlineMs = clock.monotonicMs() + SERVE_MS_MAX;
        while (ended === undefined && clock.monotonicMs() < deadlineMs && !signal?.aborted) {
            const found = await findServer(directory);
            if (found?.port !== undefined && found.identity.pid === child.pid && found.status === "ready") {
                if (await serves(found.port, context))
                    return { kind: "serving", identity: found.identity, port: found.port };
            }
            await sleep(clock, POLL_MS, signal);
        }
        const output = `${await readLog(directory, log.from)}\n${ended ?? "it does not answer"}`;
        return { kind: reasonOf(output), output };
    }
    finally {
        await log.close();
    }
}
function commandLine(directory, port) {
    const settings = {
        port,
        listen_addresses: "127.0.0.1",
        unix_socket_directories: "",
        fsync: "on",
        synchronous_commit: "on",
        full_page_writes: "on",
        password_encryption: "scram-sha-256",
        // The reasons below are read from the log, in English, from this file.
        lc_messages: "C",
        log_destination: "stderr",
        logging_collector: "off",
    };
    return ["-D", directory.pgdata, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
}
function reasonOf(output) {
    if (/could not (bind|create any TCP\/IP sockets)/.test(output))
        return "port_taken";
    if (output.includes("pre-existing shared memory block"))
        return "old_processes";
    if (/lock file "postmaster\.pid" (already exists|is empty)/.test(output))
        return "already_running";
    return /it ended with SIG(KILL|TERM|INT|QUIT)$/.test(output) ? "killed" : "failed";
}
//# sourceMappingURL=launch.js.map