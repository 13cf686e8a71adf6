/**
 * Writes a small file so that a reader, a crash or a power loss sees the old one or the new one, never half of it.
 */
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { systemRandom } from "../../../platform/random.js";
export function nonce() {
    return Buffer.from(systemRandom.bytes(6)).toString("hex");
}
export async function writeWhole(path, text, own) {
    const fresh = `${path}.new-${nonce()}`;
    try {
        const file = await open(fresh, "wx", 0o600);
        try {
            await file.writeFile(text);
            await file.sync();
        }
        finally {
            await file.close();
        }
        await own(fresh);
        await rename(fresh, path);
    }
    catch (error) {
        await rm(fresh, { force: true });
        throw error;
    }
    await syncFolder(dirname(path));
}
/** A rename is durable only when the folder is. */
export async function syncFolder(path) {
    const folder = await open(path, "r");
    try {
        await folder.sync();
    }
    finally {
        await folder.close();
    }
}
//# sourceMappingURL=write-whole.js.map