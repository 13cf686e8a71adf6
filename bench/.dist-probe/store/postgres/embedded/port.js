/**
 * The server's port on 127.0.0.1: the one it had before if that is free, so that URLs stay valid; otherwise a free one below
 * the range from which the system takes ports for outgoing connections, so that it is still free after a restart.
 */
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { systemRandom } from "../../../platform/random.js";
import { embeddedFailed } from "./failure.js";
import { writeWhole } from "./write-whole.js";
const FIRST = 20_000;
const COUNT = 10_000;
const TRIES_MAX = 200;
export async function choosePort(previous) {
    if (previous !== undefined && (await isFree(previous)))
        return previous;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
        const port = FIRST + Math.floor(systemRandom.next() * COUNT);
        if (port !== previous && (await isFree(port)))
            return port;
    }
    throw embeddedFailed(`No free port was found on 127.0.0.1 between ${FIRST} and ${FIRST + COUNT - 1}. See what listens there.`);
}
export async function previousPort(directory) {
    const text = await readFile(join(directory.path, "port"), "utf8").catch(() => "");
    const port = Number(text.trim());
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
}
export async function rememberPort(directory, port) {
    if ((await previousPort(directory)) !== port)
        await writeWhole(join(directory.path, "port"), `${port}\n`, directory.own);
}
function isFree(port) {
    return new Promise((resolve) => {
        const probe = createServer();
        probe.once("error", () => resolve(false));
        probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
    });
}
//# sourceMappingURL=port.js.map