/**
 * `makegood doctor`: looks at everything a delivery depends on and says of each whether it is well. Exit code 1 when
 * something would lose messages or stop delivery; a warning alone is 0.
 */
import type { Command } from "commander";
import type { Finding } from "../doctor/finding.ts";
import { checkConfiguration, checkNode } from "../doctor/machine.ts";
import { checkServer } from "../doctor/server.ts";
import { checkStore } from "../doctor/store.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { type Io, printJson, say } from "../io.ts";
import type { CommandContext, Run } from "../run.ts";

export function doctorCommand(program: Command, run: Run): void {
  program
    .command("doctor")
    .description("check the machine, the configuration and the store (or the server of MAKEGOOD_URL)")
    .action(() => run(examine, { asksServer: true }));
}

async function examine(context: CommandContext): Promise<ExitCode> {
  const { io, config, json } = context;
  const findings = [checkNode(), ...(await checkConfiguration(config))];
  findings.push(...(config.url === null ? await checkStore(context) : await checkServer(config.url, config.token)));
  const failed = findings.some(({ status }) => status === "fail");
  if (json) printJson(io, JSON.stringify({ status: failed ? "fail" : "ok", checks: findings }));
  else report(io, findings);
  return failed ? EXIT.failed : EXIT.ok;
}

function report(io: Io, findings: readonly Finding[]): void {
  const width = Math.max(...findings.map(({ name }) => name.length));
  for (const { status, name, detail } of findings) say(io, `${status.padEnd(4)}  ${name.padEnd(width)}  ${detail}`);
  const count = (status: Finding["status"]): number => findings.filter((finding) => finding.status === status).length;
  say(io, "", `${count("ok")} ok, ${count("warn")} to look at, ${count("fail")} failed`);
}
