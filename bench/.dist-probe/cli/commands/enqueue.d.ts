/**
 * `makegood enqueue <topic>`: hands one message over. The payload's text goes through unchanged, whatever it holds.
 */
import type { Command } from "commander";
import type { Run } from "../run.ts";
export declare function enqueueCommand(program: Command, run: Run): void;
