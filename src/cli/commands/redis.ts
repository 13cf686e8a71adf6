/** `makegood check-redis`: how durable that Redis is; and the work of `import --dlq-port`, which can be stopped and run again at any time. */
import { errorText, isMakegoodError } from "../../message/errors.ts";
import { importFormerPort, type Moved } from "../../presets/settlement/former-port.ts";
import { attestation } from "../../server/open-store.ts";
import { connectRedis, type NodeDurability, readDurability, survivesOf } from "../../store/redis/index.ts";
import type { AddCommand, CommandContext } from "../conversation.ts";
import { complain, EXIT, type ExitCode, type Io, printJson, Stop, say, tell } from "../io.ts";

const checking: AddCommand = (program, run) =>
  program
    .command("check-redis")
    .description("what the Redis of REDIS_URL says about its durability; exit code 1: not durable, 2: not reachable")
    .option("--strict", "what is only advised must hold, too")
    .action((options) => run((context) => checkRedis(context, options)));

export const commands = [checking];

async function checkRedis(context: CommandContext, { strict = false }: { strict?: boolean }): Promise<ExitCode> {
  const { io, config, json } = context;
  if (config.redis_url === null) throw new Stop("REDIS_URL is not set: it says which Redis to check");
  try {
    const port = await connectRedis(config.redis_url);
    const found = await readDurability(port, attestation(config.redis_attest)).finally(() => port.close());
    const { nodes } = found;
    const survives = survivesOf(found);
    const failed = nodes
      .flatMap(({ findings }) => findings)
      .some(({ verdict, required }) => verdict !== "verified" && (required || strict));
    tell(context, { status: failed ? "fail" : "ok", survives, strict, nodes }, () => showNodes(io, nodes, survives, strict));
    return failed ? EXIT.failed : EXIT.ok;
  } catch (error) {
    if (json) printJson(io, JSON.stringify({ status: "unreachable", error: errorText(error) }));
    complain(io, `makegood: ${errorText(error)}`);
    return isMakegoodError(error) && error.retryable ? EXIT.unreachable : EXIT.failed;
  }
}

function showNodes(io: Io, nodes: readonly NodeDurability[], survives: string, strict: boolean): void {
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

export async function importPort(
  context: CommandContext,
  { prefix, dryRun }: { prefix: string; dryRun?: boolean | undefined },
): Promise<ExitCode> {
  const { io, config, json } = context;
  if (config.redis_url === null) throw new Stop("REDIS_URL is not set: it says where the port's entries are");
  const redis = await connectRedis(config.redis_url);
  try {
    const moved = await importFormerPort(redis, {
      prefix,
      dryRun,
      progress: (so) => (json ? undefined : say(io, `${words(so)} so far`)),
      unreadable: (key, why) => complain(io, `makegood: ${key} cannot be read: ${why}`),
    });
    tell(context, { ...moved, dry_run: dryRun === true }, () =>
      say(io, `${words(moved)} ${dryRun ? "would be moved" : "moved"}, ${moved.duplicates} of them were there already`),
    );
    if (moved.conflicts > 0) complain(io, `${moved.conflicts} contradict what is stored and are dead letters of their own`);
    if (moved.left > 0) complain(io, `${moved.left} could not be read: find out what was owed`);
    return moved.left > 0 ? EXIT.failed : EXIT.ok;
  } finally {
    await redis.close();
  }
}

const words = ({ entries, terminals, quarantined }: Readonly<Moved>): string =>
  `${entries} entries, ${terminals} terminal records and ${quarantined} quarantined`;
