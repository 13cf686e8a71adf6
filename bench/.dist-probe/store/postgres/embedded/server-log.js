/**
 * The server's log file, `postgres.log`: private, appended to, and bounded. A server may run for months, so it is bounded
 * while it runs too: the server appends, so cutting the file to nothing is safe.
 */
import { copyFile, open, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { unless } from "./failure.js";
const LOG_BYTES_MAX = 10 * 1024 * 1024;
const TAIL_BYTES_MAX = 16_384;
export function logPath(directory) {
    return join(directory.path, "postgres.log");
}
/** Keeps what is there as `postgres.log.1` and starts again from nothing, once it is too long. */
export async function boundLog(directory) {
    const path = logPath(directory);
    const found = await unless(["ENOENT"], stat(path));
    if (!found || found.size <= LOG_BYTES_MAX)
        return;
    await copyFile(path, `${path}.1`);
    await truncate(path, 0);
    await directory.own(`${path}.1`);
}
/** Opens the log for a server that is about to start, and tells where its own lines begin. */
export async function openLog(directory) {
    await boundLog(directory);
    const file = await open(logPath(directory), "a", 0o600);
    await directory.own(logPath(directory));
    return { fd: file.fd, from: (await file.stat()).size, close: () => file.close() };
}
/** The last of what the server wrote since `from`. */
export async function readLog(directory, from) {
    const file = await open(logPath(directory), "r");
    try {
        const { size } = await file.stat();
        const start = Math.max(from, size - TAIL_BYTES_MAX);
        const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.max(0, size - start)), 0, Math.max(0, size - start), start);
        return buffer.toString("utf8", 0, bytesRead);
    }
    finally {
        await file.close();
    }
}
//# sourceMappingURL=server-log.js.map