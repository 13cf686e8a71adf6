/**
 * Finds PgBouncer on this machine, or installs it with apt-get where we are root; otherwise one line says what to install.
 */
import { findTool } from "./find-tool.mjs";

/** The program's path. */
export function findPgBouncer() {
  const need = "the pooler tests need it";
  return findTool({ files: ["pgbouncer"], packages: ["pgbouncer"], need, remedy: "macOS: brew install pgbouncer" });
}
