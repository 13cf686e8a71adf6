/**
 * The directory that holds everything of one embedded server: `pgdata`, the password, the log, the lock. It is made if
 * missing, and refused with the remedy if it cannot be written, or if the user PostgreSQL runs as cannot reach it. Data is
 * never copied or moved to get around that.
 */
import { chmod, chown, mkdir, open, readdir, readFile, realpath, stat, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { codeOf, embeddedFailed, unless } from "./failure.js";
import { runProgram } from "./run-program.js";
import { chooseServerUser, isRoot } from "./server-user.js";
const REMEDY = "Set MAKEGOOD_DATA_DIR to a directory that this process can write";
export async function openDirectory(dataDir) {
    const wanted = resolve(dataDir);
    let path;
    try {
        await make(wanted);
        path = await realpath(wanted);
        await tryWriting(path);
    }
    catch (error) {
        throw embeddedFailed(`The data directory ${wanted} cannot be written by uid ${process.geteuid?.()}: ${codeOf(error) ?? error}. ` +
            `${REMEDY}, or make this one writable.`, { dataDir: wanted }, error);
    }
    const pgdata = join(path, "pgdata");
    const user = await chooseServerUser(pgdata);
    if (user.uid !== undefined)
        await refuseUnreachable(path, user);
    const { uid, gid } = await stat(path);
    const own = async (file) => {
        if (isRoot() && uid !== 0)
            await chown(file, uid, gid);
    };
    return { path, pgdata, user, own };
}
/** Folders that we make: private for a normal user; as root passable, because the server's user must come through. */
async function make(path) {
    const first = await mkdir(path, { recursive: true });
    if (first === undefined)
        return;
    for (let made = path; made.length >= first.length; made = dirname(made))
        await chmod(made, isRoot() ? 0o711 : 0o700);
}
async function tryWriting(path) {
    const probe = join(path, `.writable-${process.pid}`);
    const file = await open(probe, "w", 0o600);
    await file.close();
    // Two servers of one process may try at the same moment.
    await unless(["ENOENT"], unlink(probe));
}
async function refuseUnreachable(path, user) {
    const steps = [path];
    while (dirname(steps[0]) !== steps[0])
        steps.unshift(dirname(steps[0]));
    let blocked;
    try {
        // Really tried, under that uid: mode bits alone know nothing of access lists and mounts.
        const script = 'for step; do cd "$step" 2>/dev/null || { printf %s "$step"; exit 1; }; done';
        const tried = await runProgram("/bin/sh", ["-c", script, "sh", ...steps], user);
        if (tried.code === 0)
            return;
        blocked = tried.output;
    }
    catch (error) {
        throw embeddedFailed(`PostgreSQL refuses to run as root, and a program could not be started as uid ${user.uid}: ${codeOf(error) ?? error}. ` +
            `Run this process as a normal user, or set DATABASE_URL to a PostgreSQL server of your own.`, { uid: user.uid }, error);
    }
    throw embeddedFailed(`PostgreSQL refuses to run as root, so it runs as uid ${user.uid}; that user cannot enter ${blocked}, on the way to the data ` +
        `directory ${path}. Set MAKEGOOD_DATA_DIR to a directory it can reach (for example /var/lib/makegood), or run: chmod o+x ${blocked}`, { dataDir: path, blocked, uid: user.uid });
}
/**
 * What stands in `pgdata`: nothing yet, or data of this major version. Anything else is refused; it may be somebody's data.
 */
export async function stateOfData(pgdata, major) {
    const entries = await unless(["ENOENT"], readdir(pgdata));
    if (entries === undefined || entries.length === 0)
        return "missing";
    const version = (await unless(["ENOENT"], readFile(join(pgdata, "PG_VERSION"), "utf8")))?.trim();
    if (version === undefined) {
        throw embeddedFailed(`${pgdata} is not empty and holds no PostgreSQL data (no PG_VERSION). ` +
            `Move it away, or set MAKEGOOD_DATA_DIR to another directory.`, { pgdata });
    }
    if (version !== String(major)) {
        throw embeddedFailed(`The data in ${pgdata} was made by PostgreSQL ${version}; this version of Makegood brings PostgreSQL ${major}, which cannot ` +
            `read it. Nothing was changed. Either run a PostgreSQL ${version} server on that directory and set DATABASE_URL to it, or ` +
            `move the data: dump it from that server (pg_dump of version ${major}), start here with an empty MAKEGOOD_DATA_DIR, restore the dump.`, { pgdata, found: version, needed: major });
    }
    return "present";
}
//# sourceMappingURL=data-directory.js.map