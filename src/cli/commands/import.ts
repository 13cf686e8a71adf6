/**
 * `makegood import --dlq-port`: moves what the seeds' port kept in its former layout into the Redis store that it stands on now, by
 * put-if-absent. It can be stopped and run again at any time; `--dry-run` only counts.
 */
import type { Command } from "commander";
import { importFormerPort, type Moved } from "../../presets/settlement/former-port.ts";
import { connectRedis } from "../../store/redis/index.ts";
import { report } from "../conversation.ts";
import { EXIT, type ExitCode, Stop } from "../exit-code.ts";
import { complain, printJson, say } from "../io.ts";
import type { CommandContext, Run } from "../run.ts";

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
