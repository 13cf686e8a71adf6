/**
 * Whether a directory holds the data of an embedded server: looked at without making or opening it.
 */
import { join } from "node:path";
import { isThere } from "../../shared/examine-folder.ts";

export const holdsData = (dataDir: string): Promise<boolean> => isThere(join(dataDir, "pgdata", "PG_VERSION"));
