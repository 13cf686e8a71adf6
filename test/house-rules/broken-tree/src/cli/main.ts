#!/usr/bin/env node
/** The command line: output, exit and environment are at home here, time is not. */
export function main(): void {
  console.log(process.env.HOME, Date.now());
  process.exit(0);
}
