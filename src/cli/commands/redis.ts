/**
 * `makegood check-redis`: what the Redis of REDIS_URL says about its durability; exit code 0 when all that is required is verified, 1 when
 * something failed or is not known, 2 when nobody answered. `makegood import --dlq-port`: moves what the seeds' port kept there in its former
 * layout into the store that it stands on now, by put-if-absent; it can be stopped and run again at any time.
 */
import type { Command } from "commander";
import { errorText, isMakegoodError } from "../../message/errors.ts";
import { importFormerPort, type Moved } from "../../presets/settlement/former-port.ts";
import { attestation } from "../../server/open-store.ts";
import { connectRedis, type NodeDurability, readDurability, survivesOf } from "../../store/redis/index.ts";
import { report } from "../conversation.ts";
import { EXIT, type ExitCode, Stop } from "../exit-code.ts";
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
    const port = await connectRedis(config.redis_url);
    const found = await readDurability(port, attestation(config.redis_attest)).finally(() => port.close());
    const { nodes } = found;
    const survives = survivesOf(found);
    const failed = nodes
      .flatMap(({ findings }) => findings)
      .some(({ verdict, required }) => verdict !== "verified" && (required || strict));
    if (json) printJson(io, JSON.stringify({ status: failed ? "fail" : "ok", survives, strict, nodes }));
    else showNodes(io, nodes, survives, strict);
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

interface Options {
  readonly prefix: string;
  readonly dryRun?: boolean;
}

export function importCommand(program: Command, run: Run): void {
  program
    .command("import")
    .description("move what an earlier layout holds into the store, if it is absent there; see also `journal import`")
    .requiredOption("--dlq-port", "the settlement port's entries, terminal records and quarantine, in the Redis of REDIS_URL")
    .option("--prefix <prefix>", "the port's prefix", "finn:hounfour:dlq")
    .option("--dry-run", "count, and change nothing")
    .action((options: Options) =>
      run((context) => importPort(context, options).catch((error: unknown) => report(context, error))),
    );
}

async function importPort({ io, config, json }: CommandContext, { prefix, dryRun }: Options): Promise<ExitCode> {
  if (config.redis_url === null) throw new Stop("REDIS_URL is not set: it says where the port's entries are");
  const redis = await connectRedis(config.redis_url);
  try {
    const moved = await importFormerPort(redis, {
      prefix,
      dryRun,
      progress: (so) => (json ? undefined : say(io, `${words(so)} so far`)),
      unreadable: (key, why) => complain(io, `makegood: ${key} cannot be read: ${why}`),
    });
    if (json) printJson(io, JSON.stringify({ ...moved, dry_run: dryRun === true }));
    else say(io, `${words(moved)} ${dryRun ? "would be moved" : "moved"}, ${moved.duplicates} of them were there already`);
    if (moved.conflicts > 0) complain(io, `${moved.conflicts} contradict what is stored and are dead letters of their own`);
    if (moved.left > 0) complain(io, `${moved.left} could not be read: find out what was owed`);
    return moved.left > 0 ? EXIT.failed : EXIT.ok;
  } finally {
    await redis.close();
  }
}

const words = ({ entries, terminals, quarantined }: Readonly<Moved>): string =>
  `${entries} entries, ${terminals} terminal records and ${quarantined} quarantined`;
