/**
 * `makegood check-redis`: what the Redis of REDIS_URL says about its durability, for people and for CI. Exit code 0 when
 * all that is required is verified, 1 when something failed or is not known, 2 when nobody answered.
 */
import type { Command } from "commander";
import { errorText, isMakegoodError } from "../../message/errors.ts";
import { attestation } from "../../server/open-store.ts";
import { connectRedis, type NodeDurability, readDurability, survivesOf } from "../../store/redis/index.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { complain, type Io, printJson, say } from "../io.ts";
import type { CommandContext, Run } from "../run.ts";

export function checkRedisCommand(program: Command, run: Run): void {
  program
    .command("check-redis")
    .description("what the Redis of REDIS_URL says about its durability; exit code 1: not durable, 2: not reachable")
    .option("--strict", "what is only advised must hold, too")
    .action(({ strict = false }: { strict?: boolean }) => run((context) => checkRedis(context, strict)));
}

async function checkRedis({ io, config, json }: CommandContext, strict: boolean): Promise<ExitCode> {
  if (config.redis_url === null) {
    complain(io, "makegood: REDIS_URL is not set: it says which Redis to check");
    return EXIT.usage;
  }
  try {
    const { nodes, survives } = await examine(config.redis_url, config.redis_attest);
    const failed = nodes.some(({ findings }) =>
      findings.some(({ verdict, required }) => verdict !== "verified" && (required || strict)),
    );
    if (json) printJson(io, JSON.stringify({ status: failed ? "fail" : "ok", survives, strict, nodes }));
    else show(io, nodes, survives, strict);
    return failed ? EXIT.failed : EXIT.ok;
  } catch (error) {
    if (json) printJson(io, JSON.stringify({ status: "unreachable", error: errorText(error) }));
    complain(io, `makegood: ${errorText(error)}`);
    return isMakegoodError(error) && error.retryable ? EXIT.unreachable : EXIT.failed;
  }
}

async function examine(url: string, attested: readonly string[]) {
  const port = await connectRedis(url);
  try {
    const found = await readDurability(port, attestation(attested));
    return { nodes: found.nodes, survives: survivesOf(found) };
  } finally {
    await port.close();
  }
}

function show(io: Io, nodes: readonly NodeDurability[], survives: string, strict: boolean): void {
  for (const { node, role, findings } of nodes) {
    if (nodes.length > 1) say(io, `${node} (${role})`);
    for (const { name, verdict, value, required, attested, detail } of findings) {
      const weight = verdict === "verified" ? "" : required ? " (required)" : strict ? " (required by --strict)" : " (advice)";
      const text = [value ?? "", attested ? "attested by the operator" : "", detail].filter((one) => one !== "").join(": ");
      say(io, `${verdict.padEnd(8)}  ${name.padEnd(16)}  ${text}${weight}`);
    }
  }
  say(io, "", `what is accepted survives ${survives.replace("-", " ")}`);
}
