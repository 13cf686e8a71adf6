/**
 * Looks at a data directory without making or opening it: whether it holds the data of an embedded server, and whether there is room for it.
 */
import { access, constants, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorText } from "../../../message/errors.ts";
import { type Examined, examined } from "../../shared/examined.ts";

const GIB = 1_073_741_824;

/** What may not be looked at may be there. */
async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
}

export const holdsData = (dataDir: string): Promise<boolean> => isThere(join(dataDir, "pgdata", "PG_VERSION"));

export async function examineDirectory(dataDir: string): Promise<Examined> {
  try {
    // The folder itself, or the one above it in which it would be made.
    let nearest = dataDir;
    while (!(await isThere(nearest)) && dirname(nearest) !== nearest) nearest = dirname(nearest);
    await access(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(nearest);
    const free = (bavail * bsize) / GIB;
    return examined("data dir", free >= 1, `${dataDir}, ${free.toFixed(1)} GiB free`, "warn");
  } catch (error) {
    return examined("data dir", false, `${errorText(error)}: set MAKEGOOD_DATA_DIR to a directory that can be written`);
  }
}
