/**
 * The producer's side: topics `audit-write/*`, each of which posts its records to an endpoint of the audit service. The audit
 * client delivers through them, and so does a worker that has no database of its own and is given the address of the service
 * (DATA_STORAGE_URL). A record that does not fit is rejected before it is sent, so it becomes a dead letter with its text; errors
 * are redacted.
 */
import type { Outcome } from "../../message/outcome.ts";
import { redacted } from "../../message/redact.ts";
import type { DeclaredRetry } from "../../message/retry-policy.ts";
import type { TopicName } from "../../message/topic.ts";
import type { Clock } from "../../platform/clock.ts";
import { createPoster } from "../../sink/poster.ts";
import { messageHeaders } from "../../sink/request-headers.ts";
import type { Sink } from "../../sink/sink.ts";
import { httpVerdict, isAddressFault, outcomeOfAnswer, type Verdict } from "../../sink/verdict.ts";
import { type AnyTopic, topic } from "../../topic/topic.ts";
import { checkAgain, invalid, NOT_REGISTERED } from "./draft.ts";
import { faultText, readRecord } from "./record.ts";
import { AUDIT_CLIENT_NAMESPACE, AUDIT_PATH, type AuditKind, auditKinds, QUARANTINE } from "./registry.ts";

export interface SenderOptions {
  /** The audit service, for example http://data-storage:8080. */
  readonly url: string;
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Topic → sink. */
export function senderSinks(options: SenderOptions): ReadonlyMap<TopicName, Sink> {
  const service = createService();
  const sinks = new Map(auditKinds().map((kind) => [topicOf(kind.type), typeSink(kind, options, service)] as const));
  return sinks.set(topicOf(QUARANTINE), {
    kind: "http",
    // A replay after a fix sends it; until then it stays what it is.
    deliver(delivery, context) {
      const checked = checkAgain(delivery);
      if ("refused" in checked) return checked.refused;
      const { eventId, payload } = checked.record;
      const sent = { ...delivery, payload, idempotencyKey: eventId };
      return sinks.get(topicOf(checked.kind.type))?.deliver(sent, context) ?? invalid(NOT_REGISTERED);
    },
  });
}

export function senderTopics(sinks: ReadonlyMap<TopicName, Sink>, retry: DeclaredRetry = { policy: "audit" }): AnyTopic[] {
  return [...sinks].map(([name, sink]) => topic(name, { sink, retry }));
}

const topicOf = (type: string): TopicName => `${AUDIT_CLIENT_NAMESPACE}/${type}`;

/** 200 is the endpoint's word for a record it had already. Another address or method is a wrong setting, not a wrong record. */
function verdictOf(status: number): Verdict {
  return status === 200 ? "duplicate" : isAddressFault(status) ? "retry" : httpVerdict(status);
}

function typeSink(kind: AuditKind, { url, token, headers, timeoutMs, clock }: SenderOptions, service: Service): Sink {
  const address = `${url.replace(/\/+$/, "")}${AUDIT_PATH}/${kind.type}`;
  const all = { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  const poster = createPoster({ url: address, headers: all, timeoutMs, trusted: true }, { clock });
  return {
    kind: "http",
    async deliver(delivery, context) {
      const read = readRecord(kind, delivery.payload);
      if (!read.ok) return invalid(faultText(read.faults));
      const answer = await poster.post(delivery.payload, messageHeaders(delivery), context);
      const outcome = outcomeOfAnswer(answer, verdictOf, clock.wallMs());
      // 202: the service has queued it; the caller may want to know.
      const answered =
        answer.kind === "answered" && outcome.kind === "delivered" ? { ...outcome, status: answer.status } : outcome;
      return redacted(service.withOutage(delivery.idempotencyKey, answered));
    },
    close: () => poster.close(),
  };
}

/** Nothing was sent, something in front of the service answered for it, or a person has to change a setting first. */
const AWAY = /^(?:connection_\w+|connect_timeout|dns|tls|sink_closed|http_(?:401|403|429|501|502|503|504|507))$/;
const SETTINGS = /^http_(?:401|403|501)$/;
/** So many different records without any answer in between: it is the service, not the record. */
const SILENT_RECORDS = 5;

type Service = ReturnType<typeof createService>;

/**
 * What answers say about the audit service as a whole, one for all types. While it is away (refused, not there, full, overloaded, silent
 * to several records in a row, or set up so that it takes nothing) records wait and spend no attempts, for a week if need be.
 */
export function createService() {
  const silent = new Set<string>();
  const missed = new Set<string>();
  return {
    /** The outcome of one try, with `outage` where it says nothing about the record. */
    withOutage(eventId: string, outcome: Outcome): Outcome {
      if (outcome.kind === "unserved") return outcome;
      if (outcome.kind === "unknown") {
        if (silent.size < SILENT_RECORDS) silent.add(eventId);
        // Another record did not even get through: it is not this one that keeps the service from answering.
        const away = silent.size >= SILENT_RECORDS || [...missed].some((other) => other !== eventId);
        return away ? { ...outcome, outage: true } : outcome;
      }
      if (outcome.kind === "retry") {
        const misplaced = isAddressFault(Number(/^http_(\d{3})$/.exec(outcome.code)?.[1]));
        const alert = outcome.alert === true || misplaced || SETTINGS.test(outcome.code);
        if (misplaced || AWAY.test(outcome.code)) {
          if (missed.size < 2) missed.add(eventId);
          return { ...outcome, outage: true, alert };
        }
      }
      silent.clear();
      missed.clear();
      return outcome;
    },
  };
}
