/**
 * `makegood work`: the dispatcher alone, for more hands on the same store.
 */
import type { Command } from "commander";
import type { Run } from "../run.ts";
export declare function workCommand(program: Command, run: Run): void;
