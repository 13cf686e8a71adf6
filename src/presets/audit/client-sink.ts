/**
 * The producer's side: sinks that post a record to its endpoint of the audit service. A record that does not fit is rejected before
 * it is sent (AUD-22), so it becomes a dead letter with its text and never a silent loss; errors are redacted (DA-25).
 */
import type { Clock } from "../../platform/clock.ts";
import { createPoster } from "../../sink/poster.ts";
import { messageHeaders } from "../../sink/request-headers.ts";
import type { Sink } from "../../sink/sink.ts";
import { httpVerdict, outcomeOfAnswer, type Verdict } from "../../sink/verdict.ts";
import { invalid, judgeAgain, NOT_REGISTERED } from "./quarantine.ts";
import { faultText, readRecord } from "./record.ts";
import { redacted } from "./redact.ts";
import { AUDIT_PATH, type AuditKind } from "./registry.ts";
import type { Service } from "./service.ts";

export interface ClientSinkOptions {
  /** The audit service, for example http://data-storage:8080. */
  readonly url: string;
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
  readonly service: Service;
  readonly clock: Clock;
}

/** 200 is the endpoint's word for a record it had already. Another address or method is a wrong setting, not a wrong record. */
const VERDICTS: Readonly<Record<number, Verdict>> = { 200: "duplicate", 404: "retry", 405: "retry", 421: "retry" };

export function clientSink(kind: AuditKind, options: ClientSinkOptions): Sink {
  const { token, timeoutMs, service, clock } = options;
  const url = `${options.url.replace(/\/+$/, "")}${AUDIT_PATH}/${kind.type}`;
  const headers = { ...options.headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  const poster = createPoster({ url, headers, timeoutMs, trusted: true }, { clock });
  return {
    kind: "http",
    async deliver(delivery, context) {
      const read = readRecord(kind, delivery.payload);
      if (!read.ok) return invalid(faultText(read.faults));
      const answer = await poster.post(delivery.payload, messageHeaders(delivery), context);
      const outcome = outcomeOfAnswer(answer, (status) => VERDICTS[status] ?? httpVerdict(status), clock.wallMs());
      // 202: the service has queued it; the caller may want to know.
      const told = answer.kind === "answered" && outcome.kind === "delivered" ? { ...outcome, status: answer.status } : outcome;
      return redacted(service.judge(delivery.idempotencyKey, told));
    },
    close: () => poster.close(),
  };
}

/** A replay after a fix sends it; until then it stays what it is. */
export function clientQuarantineSink(sinkOf: (type: string) => Sink | undefined): Sink {
  return {
    kind: "http",
    deliver(delivery, context) {
      const judged = judgeAgain(delivery);
      if ("refused" in judged) return judged.refused;
      const { eventId, payload } = judged.record;
      const sink = sinkOf(judged.kind.type);
      return sink?.deliver({ ...delivery, payload, idempotencyKey: eventId }, context) ?? invalid(NOT_REGISTERED);
    },
  };
}
