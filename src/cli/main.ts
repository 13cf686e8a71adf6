#!/usr/bin/env node
/** The command line as a process: the program on this process's input and output, and its result as the exit code. */
import { processIo } from "./io.ts";
import { runProgram } from "./program.ts";

const code = await runProgram(processIo(), process.argv.slice(2));
// An open handle must not keep a finished command alive; what was written has to be out before.
process.stdout.write("", () => process.exit(code));
