/** `makegood streams`: the dead letters of the seeds' Redis streams, listed, replayed, archived in the store, and trimmed after that. */
import { Argument } from "commander";
import { createMakegood } from "../../create.ts";
import { systemClock } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import { readAuditEntry, readRecoveryEntry } from "../../presets/seed-streams.ts";
import { openStore } from "../../server/open-store.ts";
import { makegoodOptions } from "../../server/serve.ts";
import * as redisDoor from "../../store/redis/index.ts";
import { type AddCommand, type CommandContext, confirmed, family, NO_TERMINAL } from "../conversation.ts";
import { EXIT, type ExitCode, Stop, say, tell } from "../io.ts";
import { warnings } from "../local.ts";
import { listing, sayJson } from "../table.ts";

type Flags = Readonly<Partial<Record<"yes" | "dryRun" | "limit" | "after" | "maxLen", string | true>>>;
type Use = (context: CommandContext, parts: redisDoor.Replaying, flags: Flags, ids: readonly string[]) => Promise<ExitCode>;

const NAME = () => new Argument("<stream>", "which one").choices(["audit", "recovery"]);
const DRY: readonly [string, string] = ["--dry-run", "say how many, and change nothing"];
const YES: readonly [string, string] = ["--yes", "do not ask"];

const below =
  (name: string, about: string, use: Use, ...options: readonly (readonly [string, string])[]): AddCommand =>
  (parent, run) => {
    const made = parent.command(name).description(about).addArgument(NAME()).argument("[ids...]", "entries, by their ids");
    for (const [flag, what] of options) made.option(flag, what);
    made.action((stream: "audit" | "recovery", ids: string[], flags: Flags) =>
      run((context) => onStream(context, stream, (parts) => use(context, parts, flags, ids))),
    );
  };

export const commands = family(
  "streams",
  "dead letters of the Redis streams of MAKEGOOD_STREAMS; always on Redis and the store themselves",
  [
    below(
      "list",
      "entries, the oldest first",
      list,
      ["--limit <n>", "how many, at most 1000"],
      ["--after <id>", "go on after this entry"],
    ),
    below("show", "one entry with its fields", show),
    below(
      "replay",
      `entries, or without ids the oldest up to ${redisDoor.REPLAY_MAX}: each once`,
      replay,
      ["--limit <n>", "how many"],
      DRY,
      YES,
    ),
    below("archive", "make each a dead letter of the store, if it is none yet", archive, DRY),
    below(
      "trim",
      "archive the oldest beyond --max-len, then delete what is archived",
      trim,
      ["--max-len <n>", "default 10000"],
      DRY,
      YES,
    ),
  ],
);

const number = (text: string | true | undefined, fallback: number, max: number): number => {
  const value = text === undefined ? fallback : Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= max) return value;
  throw new Stop(`${text} is not a whole number from 0 to ${max}`);
};

async function onStream(
  context: CommandContext,
  name: "audit" | "recovery",
  use: (parts: redisDoor.Replaying) => Promise<ExitCode>,
) {
  const { io, config } = context;
  const { streams } = config;
  const opened = streams?.[name] ?? null;
  if (streams === null || opened === null)
    throw new Stop(`MAKEGOOD_STREAMS does not name ${name}: it and REDIS_URL say where the stream is`);
  const seed = name === "audit" ? redisDoor.AUDIT_STREAM : { ...redisDoor.RECOVERY_STREAM, ...streams.recovery };
  const namespace = streams.audit?.serviceUrl == null ? "audit" : "audit-write";
  const redis = await redisDoor.connectRedis(streams.redis);
  const { store, release } = await openStore(config, warnings(io), undefined, "check");
  try {
    const mg = await createMakegood(makegoodOptions(config, store, systemClock));
    try {
      const stream = redisDoor.deadStreamOf({ stream: seed.stream ?? "", seedDeadStream: seed.deadStream }, redis.cluster);
      const read: redisDoor.Replaying["read"] =
        name === "audit" ? (entry) => readAuditEntry(seed.stream ?? "", entry, namespace) : readRecoveryEntry;
      const accept: redisDoor.Replaying["accept"] = (messages) => mg.enqueueText(messages);
      return await use({ redis, stream, store, ids: createIds(systemClock), actor: "cli", read, accept });
    } finally {
      await mg.close();
    }
  } finally {
    await release();
    await redis.close();
  }
}

const entryList = listing<redisDoor.DeadEntry>(["id", "kind", "code", "reason", ["message", "messageId"]]);
const rowOf = ({ messageId, entryId, fields, ...entry }: redisDoor.DeadEntry) => ({
  ...entry,
  message_id: messageId,
  entry_id: entryId,
});

async function list(context: CommandContext, { redis, stream }: redisDoor.Replaying, flags: Flags): Promise<ExitCode> {
  const limit = number(flags.limit, 50, 1_000);
  const found = await redisDoor.readDead(redis, stream, typeof flags.after === "string" ? flags.after : undefined, limit);
  const total = Number(await redis.send(stream, ["XLEN", stream]));
  const next = found.length === limit ? (found.at(-1)?.id ?? null) : null;
  return tell(context, { stream, total, data: found.map(rowOf), next_cursor: next }, () => {
    if (found.length > 0) entryList(context.io, { data: found });
    say(context.io, `${total} in ${stream}${next === null ? "" : `; go on with --after ${next}`}`);
  });
}

async function show(context: CommandContext, { redis, stream }: redisDoor.Replaying, _: Flags, [id = ""]: readonly string[]) {
  const entry = await redisDoor.findDead(redis, stream, id);
  if (!entry) throw new Stop(`${stream} has no entry ${id}`, EXIT.notFound);
  const shown = { ...rowOf(entry), fields: entry.fields };
  return tell(context, shown, () => sayJson(context.io, shown));
}

async function wanted({ io }: CommandContext, question: string, { yes }: Flags): Promise<void> {
  if (yes === true) return;
  if (!io.tty) throw new Stop(NO_TERMINAL);
  await confirmed(io, question);
}

async function replay(
  context: CommandContext,
  parts: redisDoor.Replaying,
  flags: Flags,
  ids: readonly string[],
): Promise<ExitCode> {
  const limit = number(flags.limit, redisDoor.REPLAY_MAX, redisDoor.REPLAY_MAX);
  if (ids.length > redisDoor.REPLAY_MAX) throw new Stop(`at most ${redisDoor.REPLAY_MAX} at once`);
  const count = ids.length > 0 ? ids.length : (await redisDoor.readDead(parts.redis, parts.stream, undefined, limit)).length;
  if (flags.dryRun)
    return tell(context, { would_replay: count, dry_run: true }, () => say(context.io, `${count} would be replayed`));
  await wanted(context, `replay ${count} entries of ${parts.stream}?`, flags);
  const { done, skipped, errors } = await redisDoor.replayDead(parts, ids.length > 0 ? { ids } : { limit });
  tell(context, { replayed: done, skipped, errors }, () =>
    say(
      context.io,
      `${done} replayed, ${skipped} were before, ${errors.length} could not be`,
      ...errors.map(({ id, error }) => `${id}: ${error}`),
    ),
  );
  return errors.length === 0 ? EXIT.ok : EXIT.failed;
}

async function archive(context: CommandContext, parts: redisDoor.Replaying, flags: Flags): Promise<ExitCode> {
  return archiving(context, parts, flags, null);
}

async function trim(context: CommandContext, parts: redisDoor.Replaying, flags: Flags): Promise<ExitCode> {
  return archiving(context, parts, flags, number(flags.maxLen, redisDoor.TRIM_LENGTH, Number.MAX_SAFE_INTEGER));
}

async function archiving(
  context: CommandContext,
  parts: redisDoor.Replaying,
  flags: Flags,
  lengthMax: number | null,
): Promise<ExitCode> {
  const { redis, stream } = parts;
  const length = Number(await redis.send(stream, ["XLEN", stream]));
  const count = lengthMax === null ? length : Math.max(0, length - lengthMax);
  if (flags.dryRun)
    return tell(context, { length, would_archive: count, dry_run: true }, () =>
      say(context.io, `${count} of ${length} would be archived`),
    );
  if (lengthMax !== null) await wanted(context, `archive and delete the ${count} oldest entries of ${stream}?`, flags);
  const worked = await (lengthMax === null ? redisDoor.archiveDead(parts) : redisDoor.trimDead(parts, lengthMax));
  const { done, skipped, errors, removed } = worked;
  tell(context, { archived: done, skipped, trimmed: removed, errors }, () =>
    say(
      context.io,
      `${done} archived, ${skipped} were there, ${removed} deleted, ${errors.length} left`,
      ...errors.map(({ id, error }) => `${id}: ${error}`),
    ),
  );
  return errors.length === 0 ? EXIT.ok : EXIT.failed;
}
