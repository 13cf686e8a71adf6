/**
 * Copies of PostgreSQL's programs for a server's user that cannot reach the package, or for a package that cannot be written.
 * A copy appears under its name only when it is whole, and a place that somebody else could have filled is not used.
 */
import { createHash } from "node:crypto";
import { chmod, copyFile, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { embeddedFailed, unless } from "./failure.js";
/**
 * First beside the data: the server's user reaches it, it stays as long as the data does, and nothing sweeps it. A data
 * volume may forbid programs (noexec); then the system's temporary folder.
 */
export function cachePlaces(directory) {
    return [join(directory.path, "binaries"), join(tmpdir(), `makegood-postgres-${process.geteuid?.()}`)];
}
/** The copy's `native` folder; made if it is missing or no longer whole. */
export async function copyNative(native, place, log) {
    const files = await listFiles(native);
    const version = await packageVersion(native);
    const hash = createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 12);
    await makePlace(place);
    const home = join(place, `${version}-${hash}`);
    if (await isWhole(join(home, "native"), files))
        return join(home, "native");
    log(`copying PostgreSQL's programs to ${home}`);
    const fresh = await mkdtemp(join(place, ".copying-"));
    try {
        await copyFiles(native, join(fresh, "native"), files);
        await chmod(fresh, 0o755);
        await unless(["ENOTEMPTY", "EEXIST"], rename(fresh, home));
        // Either another process was first, or what stands there is not whole (a sweeper of /tmp was here): then it is replaced.
        if (!(await isWhole(join(home, "native"), files))) {
            await rename(home, `${fresh}.old`);
            await unless(["ENOTEMPTY", "EEXIST"], rename(fresh, home));
        }
    }
    finally {
        await rm(fresh, { recursive: true, force: true });
        await rm(`${fresh}.old`, { recursive: true, force: true });
    }
    return join(home, "native");
}
/** Ours alone to write, and a folder, not a link to one: otherwise somebody else's programs could be waiting there. */
async function makePlace(place) {
    const made = await unless(["EEXIST"], mkdir(place, { mode: 0o755 }).then(() => true));
    if (made)
        await chmod(place, 0o755);
    const found = await lstat(place);
    const parent = await stat(dirname(place));
    const ours = found.uid === process.geteuid?.() || (found.uid === parent.uid && (parent.mode & 0o002) === 0);
    if (!found.isDirectory() || !ours || (found.mode & 0o022) !== 0) {
        throw embeddedFailed(`belongs to uid ${found.uid} (mode ${(found.mode & 0o7777).toString(8)}), so what is in it is not trusted`);
    }
}
/** What a server needs at run time; archives for linking are left out. */
async function listFiles(native) {
    const listed = [];
    for (const entry of await readdir(native, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || entry.name.endsWith(".a"))
            continue;
        const path = join(entry.parentPath, entry.name);
        listed.push([path.slice(native.length + 1), (await stat(path)).size]);
    }
    return listed.sort(([a], [b]) => (a < b ? -1 : 1));
}
async function isWhole(native, files) {
    for (const [path, bytes] of files) {
        if ((await unless(["ENOENT", "ENOTDIR"], lstat(join(native, path))))?.size !== bytes)
            return false;
    }
    return true;
}
async function copyFiles(from, to, files) {
    const folders = new Set();
    const makeFolder = async (folder) => {
        if (folders.has(folder))
            return;
        folders.add(folder);
        if (folder !== to)
            await makeFolder(dirname(folder));
        await mkdir(folder, { recursive: true });
        await chmod(folder, 0o755); // whatever the umask: the server's user must come through
    };
    for (const [path] of files) {
        await makeFolder(dirname(join(to, path)));
        await copyFile(join(from, path), join(to, path));
        await chmod(join(to, path), path.startsWith("bin/") || path.includes(".so") ? 0o755 : 0o644);
    }
}
async function packageVersion(native) {
    const text = await unless(["ENOENT"], readFile(join(native, "..", "package.json"), "utf8"));
    const version = text === undefined ? undefined : JSON.parse(text).version;
    return version ?? "unknown";
}
//# sourceMappingURL=binaries-cache.js.map