/**
 * The outlet: publishes open dead letters to a stream, each with its whole record and error history (DA-8), at least once. The
 * store is the truth and the stream follows it: every pass looks at all open dead letters and publishes those without a mark, and
 * mark and entry are one write, so a pass that dies anywhere is simply made again (docs/decisions/0015-streams-and-the-seeds-port.md).
 */
import { errorText } from "../../../message/errors.ts";
import { LIMITS } from "../../../message/limits.ts";
import type { AttemptRecord, MessageView, ProvenanceRecord } from "../../../message/message.ts";
import { backoffMs } from "../../../platform/backoff.ts";
import { type Clock, systemClock } from "../../../platform/clock.ts";
import { startLoop } from "../../../platform/loop.ts";
import type { Store } from "../../store.ts";
import { runLua } from "../lua.ts";
import type { RedisPort } from "../port.ts";
import { siblingKey } from "./entries.ts";
import { FORGET_MARKS, PUBLISH, SEE_MARKS } from "./scripts.ts";

export interface OutletOptions {
  readonly redis: RedisPort;
  readonly store: Pick<Store, "list" | "get" | "history">;
  readonly stream: string;
  /** Only dead letters of these topics; absent: of all. */
  readonly topics?: readonly string[] | undefined;
  /** How often a pass is made; default 10,000. A nudge makes one at once. */
  readonly everyMs?: number | undefined;
  readonly onNotice?: ((notice: OutletNotice) => void) | undefined;
  readonly clock?: Clock | undefined;
}

export type OutletNotice =
  | { readonly what: "published"; readonly id: string; readonly entryId: string }
  | { readonly what: "pass_failed"; readonly error: string; readonly consecutive: number };

export interface Outlet {
  /** There may be a new dead letter; a hint only, the pass is the truth. */
  nudge(): void;
  /** One pass now, beside the loop; returns how many were published. */
  pass(signal?: AbortSignal): Promise<number>;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const PAGE = 200;
const RETRY = { firstMs: 500, maxMs: 60_000 };
/** A mark outlives its dead letter by this: longer than any pass takes, however slow. */
const MARK_KEPT_SECONDS = "86400";

export function startOutlet(options: OutletOptions): Outlet {
  const { everyMs = 10_000, clock = systemClock } = options;
  const tell = (notice: OutletNotice): void => {
    try {
      options.onNotice?.(notice);
    } catch {
      // A listener that throws must not stop a pass.
    }
  };
  const pass = (signal?: AbortSignal): Promise<number> => publishOpen(options, tell, signal);
  const loop = startLoop({
    clock,
    async step(signal) {
      await pass(signal);
      return everyMs;
    },
    failed(error, consecutive) {
      tell({ what: "pass_failed", error: errorText(error), consecutive });
      return backoffMs(RETRY, consecutive);
    },
  });
  const stop = (): Promise<void> => loop.stop();
  return { nudge: () => loop.nudge(), pass, stop, [Symbol.asyncDispose]: stop };
}

/** A replayed message that dies again is another death and is published again: the generation is part of the mark. */
const markOf = ({ id, generation }: MessageView): string => `${id}/${generation}`;

/** How many were published; `dryRun`: how many would be. */
export async function publishOpen(
  options: OutletOptions & { readonly dryRun?: boolean | undefined },
  tell: (notice: OutletNotice) => void,
  signal?: AbortSignal,
): Promise<number> {
  const marks = siblingKey(options.stream, "published");
  let published = 0;
  for (const topic of options.topics ?? [undefined]) {
    published += await publishTopic(options, marks, topic, tell, signal);
    // Marks are forgotten only by a pass that has looked at all of them.
    if (signal?.aborted) return published;
  }
  await runLua(options.redis, FORGET_MARKS, [marks], [MARK_KEPT_SECONDS]);
  return published;
}

async function publishTopic(
  { redis, store, stream, dryRun = false }: Parameters<typeof publishOpen>[0],
  marks: string,
  topic: string | undefined,
  tell: (notice: OutletNotice) => void,
  signal?: AbortSignal,
): Promise<number> {
  let published = 0;
  let cursor: string | null = null;
  do {
    const filter = { status: "dead", resolution: "open", topic, payload: false, limit: PAGE } as const;
    const page = await store.list(cursor === null ? filter : { ...filter, cursor });
    cursor = page.nextCursor;
    if (page.data.length === 0) break;
    const seen = (await runLua(redis, SEE_MARKS, [marks], page.data.map(markOf))) as unknown[];
    for (const [i, listed] of page.data.entries()) {
      if (signal?.aborted) return published;
      if (Number(seen[i]) === 1) continue;
      if (dryRun) {
        published++;
        continue;
      }
      const fields = await recordOf(store, listed);
      if (fields === null) continue;
      const entryId = String(await runLua(redis, PUBLISH, [stream, marks], [markOf(listed), ...fields]));
      if (entryId === "") continue;
      published++;
      tell({ what: "published", id: listed.id, entryId });
    }
  } while (cursor !== null);
  return published;
}

/** Null when it has moved on since it was listed: the next pass sees what became of it. */
async function recordOf(store: OutletOptions["store"], listed: MessageView): Promise<string[] | null> {
  const message = await store.get(listed.id);
  if (message?.status !== "dead" || message.resolution !== "open" || message.generation !== listed.generation) return null;
  const { attempts, provenance } = await store.history(listed.id);
  const fields: Record<string, string> = {
    id: message.id,
    topic: message.topic,
    tenant_id: message.tenantId ?? "",
    key: message.key ?? "",
    ordering_key: message.orderingKey ?? "",
    payload: message.payload,
    schema_version: message.schemaVersion === null ? "" : String(message.schemaVersion),
    traceparent: message.traceparent ?? "",
    attempts: String(message.attempts),
    generation: String(message.generation),
    created_at: message.createdAt.toISOString(),
    died_at: message.diedAt?.toISOString() ?? "",
    last_code: message.lastCode ?? "",
    last_error: message.lastError ?? "",
    // Attempts are bounded by their policies, replays by people; the newest thousand tell enough in any case.
    history: JSON.stringify(attempts.slice(-LIMITS.attemptsMax).map(attemptJson)),
    provenance: JSON.stringify(provenance.slice(-LIMITS.attemptsMax).map(provenanceJson)),
  };
  return Object.entries(fields).flat();
}

const attemptJson = (one: AttemptRecord) => ({
  attempt: one.attempt,
  outcome: one.outcome,
  counted: one.counted,
  at: one.at.toISOString(),
  duration_ms: one.durationMs,
  code: one.code,
  error: one.error,
});

const provenanceJson = ({ at, actor, action, reason }: ProvenanceRecord) => ({ at: at.toISOString(), actor, action, reason });
