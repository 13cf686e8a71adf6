/**
 * `makegood doctor`: looks at everything a delivery depends on and says of each whether it is well. Exit code 1 when
 * something would lose messages or stop delivery; a warning alone is 0.
 */
import type { Command } from "commander";
import type { Run } from "../run.ts";
export declare function doctorCommand(program: Command, run: Run): void;
