/**
 * `makegood migrate up|status|print`: the database schema, applied, looked at, or printed for somebody else to apply.
 */
import type { Command } from "commander";
import type { Run } from "../run.ts";
export declare function migrateCommand(program: Command, run: Run): void;
