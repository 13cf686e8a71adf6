/**
 * The seeds' streams as `serve` and `work` run them: opened when the configuration names them, each thing that happens at their
 * doors is one line of the log (AUD-34), closed before the store is.
 */
import type { Makegood } from "../create.ts";
import { MakegoodError } from "../message/errors.ts";
import { topicMatches } from "../message/validate.ts";
import type { Log, LogLevel } from "../observe/log.ts";
import type { Clock } from "../platform/clock.ts";
import { RECOVERY_TOPIC } from "../recovery/topics.ts";
import { auditOf } from "../store/audit.ts";
import {
  AUDIT_STREAM,
  checkReclaim,
  connectRedis,
  deadStreamOf,
  RECOVERY_STREAM,
  reclaimSpanMs,
  type StreamDoors,
  type StreamNotice,
} from "../store/redis/index.ts";
import { compareDeadStream } from "../store/redis/streams/stream-only.ts";
import type { Store } from "../store/store.ts";
import type { AnyTopic } from "../topic/topic.ts";
import type { Place } from "../verify/verify.ts";
import { auditTopicNames } from "./audit/registry.ts";
import { senderSinks, senderTopics } from "./audit/sender.ts";
import { type RecoveryStreamSettings, startAuditStream, startRecoveryStream } from "./seed-streams.ts";

export interface StreamsConfig {
  /** Where the streams are. */
  readonly redis: string;
  /** `serviceUrl`: the audit service that gets the records over HTTP; null: this process writes them to its own store. */
  readonly audit: { readonly group: string | undefined; readonly serviceUrl: string | null } | null;
  readonly recovery: RecoveryStreamSettings | null;
  readonly consumerName: string | undefined;
}

/** What a configuration says of them. */
interface Config {
  /** Null: none is opened here. */
  readonly streams: StreamsConfig | null;
  /** Variables that are set and have no effect in this configuration. */
  readonly unused_variables: readonly string[];
  readonly drain_ms: number;
  /** The secret that the audit service wants. */
  readonly token: string | null;
}

type PlacesConfig = Pick<Config, "streams"> & { readonly dead_kept_days: number | "forever" };

interface StreamParts {
  readonly config: Config;
  readonly mg: Makegood;
  readonly log: Log;
  readonly clock: Clock;
  /** Which topics this process works on. */
  readonly patterns: readonly string[];
}

/** One try at the audit service. */
const SEND_TIMEOUT_MS = 10_000;
const STOP_MS = 10_000;
const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;

/** The topics that the streams need beside the audit topics of the store. */
export function streamTopics({ streams, token }: Config, clock: Clock): AnyTopic[] {
  const url = streams?.audit?.serviceUrl ?? null;
  if (url === null) return [];
  return senderTopics(senderSinks({ url, token: token ?? undefined, timeoutMs: SEND_TIMEOUT_MS, clock }));
}

/** The dead streams, as places that conservation holds against the store. */
export function streamPlaces({ streams, dead_kept_days: days }: PlacesConfig, store: Store): Place[] {
  if (streams === null) return [];
  const opened = {
    audit: streams.audit && AUDIT_STREAM,
    recovery: streams.recovery && { ...RECOVERY_STREAM, ...streams.recovery },
  };
  const deadKeptMs = days === "forever" ? null : days * DAY_MS;
  const connect = () => connectRedis(streams.redis);
  return Object.entries(opened).flatMap(([name, seed]) => {
    if (seed === null) return [];
    const streamOf = (cluster: boolean) => deadStreamOf({ stream: seed.stream ?? "", seedDeadStream: seed.deadStream }, cluster);
    return [{ name: `stream ${name}`, look: compareDeadStream({ store, connect, streamOf, deadKeptMs }) }];
  });
}

export function startStreams(parts: StreamParts): { stop(): Promise<void> } {
  const { config, log } = parts;
  const { streams, unused_variables: unused, drain_ms } = config;
  if (unused.length > 0) {
    log.warn("variables of the seeds' streams are set and have no effect: MAKEGOOD_STREAMS opens streams", { variables: unused });
  }
  const opened = streams === null ? [] : [...openAudit(parts, streams), ...openRecovery(parts, streams)];
  const timeoutMs = Math.min(STOP_MS, drain_ms);
  return { stop: async () => void (await Promise.all(opened.map((doors) => doors.stop({ timeoutMs })))) };
}

function openAudit(parts: StreamParts, { redis, consumerName, audit }: StreamsConfig): StreamDoors[] {
  if (audit === null) return [];
  const { mg, clock } = parts;
  if (audit.serviceUrl === null && auditOf(mg.store) === null) {
    throw new MakegoodError("invalid_config", "the audit stream needs a store with audit records, or DATA_STORAGE_URL");
  }
  const namespace = audit.serviceUrl === null ? "audit" : "audit-write";
  const onNotice = noticeLog(parts, "audit", auditTopicNames(namespace));
  return [startAuditStream({ mg, redis, group: audit.group, consumerName, namespace, onNotice, clock })];
}

function openRecovery(parts: StreamParts, { redis, consumerName, recovery }: StreamsConfig): StreamDoors[] {
  if (recovery === null) return [];
  const { mg, log, clock } = parts;
  const onNotice = noticeLog(parts, "recovery", [RECOVERY_TOPIC]);
  // CON-27: limit and backoff are two settings and one promise; this is the promise.
  const spanMs = reclaimSpanMs(checkReclaim(recovery));
  const text = "an entry that kills the process that reads it is quarantined after this long";
  log[spanMs > WEEK_MS ? "warn" : "info"](text, { stream: "recovery", quarantined_after_ms: spanMs });
  return [startRecoveryStream({ ...recovery, mg, redis, consumerName, onNotice, clock })];
}

/** What is not said as information. */
const LEVELS: Readonly<Partial<Record<StreamNotice["what"], LogLevel>>> = {
  accepted: "debug",
  consumers_checked: "debug",
  not_durable: "warn",
  too_long: "warn",
  quarantined: "error",
  quarantine_failed: "error",
  lost: "error",
};

function noticeLog({ log, patterns }: StreamParts, stream: string, topics: readonly string[]): (notice: StreamNotice) => void {
  // Accepted and delivered by nobody here: fine where another process works on them, and a mistake where none does.
  const left = topics.filter((topic) => !patterns.some((pattern) => topicMatches(pattern, topic)));
  if (left.length > 0) log.warn("this process reads a stream and does not work on its topics", { stream, topics: left });
  return ({ what, ...fields }) => {
    const level = LEVELS[what] ?? (what.endsWith("_failed") ? "warn" : "info");
    log[level](`stream ${what.replaceAll("_", " ")}`, { stream, ...fields });
  };
}
