/**
 * `makegood topics list|show|set|pause|resume|delete`.
 */
import type { Command } from "commander";
import type { Run } from "../run.ts";
export declare function topicsCommand(program: Command, run: Run): void;
