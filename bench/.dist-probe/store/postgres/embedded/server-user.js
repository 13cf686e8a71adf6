/**
 * Whom PostgreSQL runs as. It refuses root, so root lends it an unprivileged uid: the owner of the data if there is any,
 * else `nobody`; no user is created. Everybody else runs it as themselves.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { embeddedFailed, unless } from "./failure.js";
const NOBODY = 65_534;
export function isRoot() {
    return process.geteuid?.() === 0;
}
export async function chooseServerUser(pgdata) {
    // An empty folder is no data yet: whoever made it, it will be replaced.
    const empty = (await unless(["ENOENT", "EACCES"], readdir(pgdata)))?.length === 0;
    const data = empty ? undefined : await unless(["ENOENT"], stat(pgdata));
    if (!isRoot()) {
        const uid = process.geteuid?.();
        if (data && data.uid !== uid) {
            throw embeddedFailed(`The data in ${pgdata} belongs to uid ${data.uid}, and this process runs as uid ${uid}. ` +
                `Run as the owner, or set MAKEGOOD_DATA_DIR to a directory of this user.`, { pgdata, owner: data.uid, uid });
        }
        return {};
    }
    const nobody = await findNobody();
    if (data?.uid === 0) {
        throw embeddedFailed(`The data in ${pgdata} belongs to root, and PostgreSQL refuses to run as root. ` +
            `Give it to the user the server runs as: chown -R ${nobody.uid}:${nobody.gid} ${pgdata}`, { pgdata });
    }
    return data ? { uid: data.uid, gid: data.gid } : nobody;
}
async function findNobody() {
    const passwd = await readFile("/etc/passwd", "utf8").catch(() => "");
    const [, , uid, gid] = /^nobody:.*$/m.exec(passwd)?.[0].split(":") ?? [];
    // A passwd that makes nobody root, or holds no number, is not believed.
    return { uid: Number(uid) || NOBODY, gid: Number(gid) || NOBODY };
}
//# sourceMappingURL=server-user.js.map