/** Looks at a folder that is written to, without making it: whether it can be, and what room its disk has. */
import { access, constants, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { errorText } from "../../message/errors.ts";
import { type Examined, examined } from "./examined.ts";

const GIB = 1_073_741_824;
const FREE_GIB_MIN = 1;

/** What may not be looked at may be there. */
export const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );

/** `variable`: the setting that names another one. */
export async function examineFolder(name: string, path: string, variable: string): Promise<Examined> {
  try {
    // The folder itself, or the one above it in which it would be made.
    let nearest = path;
    while (!(await isThere(nearest)) && dirname(nearest) !== nearest) nearest = dirname(nearest);
    await access(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail, bsize, ffree, files } = await statfs(nearest);
    const free = (bavail * bsize) / GIB;
    // Some file systems count no files.
    const full = bavail === 0 || (files > 0 && ffree === 0);
    const detail = `${path}, ${free.toFixed(1)} GiB free${full ? ": full" : ""}`;
    return examined(name, free >= FREE_GIB_MIN && !full, detail, full ? "fail" : "warn");
  } catch (error) {
    return examined(name, false, `${errorText(error)}: set ${variable} to a directory that can be written`);
  }
}
