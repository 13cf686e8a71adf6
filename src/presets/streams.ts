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
import { checkReclaim, reclaimSpanMs, type StreamDoors, type StreamNotice } from "../store/redis/index.ts";
import type { AnyTopic } from "../topic/topic.ts";
import { senderSinks, senderTopics } from "./audit/sender.ts";
import { auditStreamTopics, startAuditStream } from "./audit/stream.ts";
import { type RecoveryStreamSettings, startRecoveryStream } from "./recovery/stream.ts";

export interface StreamsConfig {
  /** Where the streams are. */
  readonly redis: string;
  readonly audit: AuditStreamConfig | null;
  readonly recovery: RecoveryStreamSettings | null;
  readonly consumerName: string | undefined;
}

export interface AuditStreamConfig {
  readonly group: string | undefined;
  /** The audit service that gets the records over HTTP; null: this process writes them to its own store. */
  readonly serviceUrl: string | null;
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

export interface StreamParts {
  readonly config: Config;
  readonly mg: Makegood;
  readonly log: Log;
  readonly clock: Clock;
  /** Which topics this process works on. */
  readonly patterns: readonly string[];
}

export interface Streams {
  stop(): Promise<void>;
}

/** One try at the audit service. */
const SEND_TIMEOUT_MS = 10_000;
const STOP_MS = 10_000;
const WEEK_MS = 7 * 86_400_000;

/** The topics that the streams need beside the audit topics of the store. */
export function streamTopics({ streams, token }: Config, clock: Clock): AnyTopic[] {
  const url = streams?.audit?.serviceUrl ?? null;
  if (url === null) return [];
  return senderTopics(senderSinks({ url, token: token ?? undefined, timeoutMs: SEND_TIMEOUT_MS, clock }));
}

export function startStreams(parts: StreamParts): Streams {
  const { config, log } = parts;
  const { streams, unused_variables: unused, drain_ms } = config;
  if (unused.length > 0) {
    log.warn("variables of the seeds' streams are set and have no effect: MAKEGOOD_STREAMS opens streams", { variables: unused });
  }
  const opened: StreamDoors[] = [];
  if (streams?.audit) opened.push(openAudit(parts, streams, streams.audit));
  if (streams?.recovery) opened.push(openRecovery(parts, streams, streams.recovery));
  const timeoutMs = Math.min(STOP_MS, drain_ms);
  return {
    stop: async () => void (await Promise.all(opened.map((doors) => doors.stop({ timeoutMs })))),
  };
}

function openAudit(parts: StreamParts, { redis, consumerName }: StreamsConfig, audit: AuditStreamConfig): StreamDoors {
  const { mg, log, clock, patterns } = parts;
  if (audit.serviceUrl === null && auditOf(mg.store) === null) {
    throw new MakegoodError("invalid_config", "the audit stream needs a store with audit records, or DATA_STORAGE_URL");
  }
  const namespace = audit.serviceUrl === null ? "audit" : "audit-write";
  sayUnworked(log, patterns, auditStreamTopics(namespace), "audit");
  const onNotice = noticeLog(log, "audit");
  return startAuditStream({ mg, redis, group: audit.group, consumerName, namespace, onNotice, clock });
}

function openRecovery(
  { mg, log, clock, patterns }: StreamParts,
  { redis, consumerName }: StreamsConfig,
  recovery: RecoveryStreamSettings,
): StreamDoors {
  sayUnworked(log, patterns, [RECOVERY_TOPIC], "recovery");
  // CON-27: limit and backoff are two settings and one promise; this is the promise.
  const spanMs = reclaimSpanMs(checkReclaim(recovery));
  const text = "an entry that kills the process that reads it is quarantined after this long";
  log[spanMs > WEEK_MS ? "warn" : "info"](text, { stream: "recovery", quarantined_after_ms: spanMs });
  const onNotice = noticeLog(log, "recovery");
  return startRecoveryStream({ ...recovery, mg, redis, consumerName, onNotice, clock });
}

/** Accepted and delivered by nobody here: fine where another process works on them, and a mistake where none does. */
function sayUnworked(log: Log, patterns: readonly string[], topics: readonly string[], stream: string): void {
  const left = topics.filter((topic) => !patterns.some((pattern) => topicMatches(pattern, topic)));
  if (left.length > 0) log.warn("this process reads a stream and does not work on its topics", { stream, topics: left });
}

const LEVELS: Readonly<Record<StreamNotice["what"], LogLevel>> = {
  started: "info",
  stopped: "info",
  accepted: "debug",
  reclaimed: "info",
  consumers_removed: "info",
  published: "info",
  accept_failed: "warn",
  settle_failed: "warn",
  read_failed: "warn",
  pass_failed: "warn",
  open_failed: "warn",
  not_durable: "warn",
  too_long: "warn",
  quarantined: "error",
  quarantine_failed: "error",
  lost: "error",
};

function noticeLog(log: Log, stream: string): (notice: StreamNotice) => void {
  return ({ what, ...fields }) => log[LEVELS[what]](`stream ${what.replaceAll("_", " ")}`, { stream, ...fields });
}
