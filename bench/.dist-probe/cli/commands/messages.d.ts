/**
 * `makegood messages list|show|replay|resolve|discard`.
 */
import { type Command } from "commander";
import type { Run } from "../run.ts";
export declare function messagesCommand(program: Command, run: Run): void;
