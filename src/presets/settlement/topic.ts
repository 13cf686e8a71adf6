/**
 * The topic `billing/finalize`, and its sink: one call of the billing service and nothing else. It signs, sends, reads the answer and says
 * what it was. It touches no store and keeps no count of attempts, so a first try and a replay are the same call. It never throws and
 * never takes longer than its deadline, signing included.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import { readObject } from "../../message/json.ts";
import { LIMITS } from "../../message/limits.ts";
import { oneLine } from "../../message/one-line.ts";
import type { Outcome } from "../../message/outcome.ts";
import type { DeclaredRetry } from "../../message/retry-policy.ts";
import { isTraceparent } from "../../message/validate.ts";
import { type Clock, within } from "../../platform/clock.ts";
import { createAddressGuard } from "../../sink/address-guard.ts";
import { checkUrl } from "../../sink/check-target.ts";
import { createPoster } from "../../sink/poster.ts";
import { headerText } from "../../sink/request-headers.ts";
import type { DeliverContext } from "../../sink/sink.ts";
import { TOPIC } from "../../store/redis/dlq-port/entry.ts";
import { type AnyTopic, topic } from "../../topic/topic.ts";
import { type Judged, judge, judgeReservation } from "./answer.ts";
import type { Lines } from "./lines.ts";
import type { SettlementOptions } from "./options.ts";
import { type FinalizeRequest, type Obligation, readRequest } from "./request.ts";

export { TOPIC };

type Service = "billingUrl" | "s2sSigner" | "s2sSubjectMode" | "reservationPath";

export interface TopicParts extends Pick<SettlementOptions, Service> {
  readonly retry: DeclaredRetry;
  readonly timeoutMs: number;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly lines: Lines;
  /** What an answer was taken for. */
  readonly judged: (judged: Judged, request: FinalizeRequest) => void;
}

const PATH = "/api/internal/finalize";
const CONNECTIONS_MAX = 64;
const SNIPPET_BYTES = 1_000;
const HEADER_VALUE = /^[\x21-\x7e]+$/;

export function settlementTopic(options: TopicParts): AnyTopic {
  const { clock, timeoutMs, retry, leaseMs, lines, reservationPath: template } = options;
  const url = finalizeUrl(options.billingUrl);
  const connection = { timeoutMs, trusted: true, connectionsMax: CONNECTIONS_MAX, raw: true } as const;
  const poster = createPoster({ ...connection, url: url.href }, { clock });
  if (template !== undefined) checkReservationPath(template);

  async function call(request: FinalizeRequest, { signal, ...context }: DeliverContext): Promise<Outcome> {
    const startedMs = clock.monotonicMs();
    const totalMs = Math.min(timeoutMs, context.timeoutMs);
    const leftMs = (): number => Math.max(1, Math.round(totalMs - (clock.monotonicMs() - startedMs)));
    const token = await sign(request, options, totalMs);
    if (typeof token !== "string") return token;
    // DF-34: after a timeout nobody knows whether it landed; the receiver recognises the repeat.
    const headers = ["idempotency-key", headerText(request.reservation_id), ...headersOf(request, token)];
    const answer = await poster.post(bodyOf(request), headers, { signal, timeoutMs: leftMs() });
    if (answer.kind === "failed") return answer.outcome;
    const first = judge(answer, request, clock.wallMs());
    const judged = first.unverified ? ((await ask(request, leftMs, signal)) ?? first) : first;
    options.judged(judged, request);
    return judged.outcome;
  }

  /** What the reservation itself says, within the time that the call has left. Null: it is not to be asked, or gives no answer. */
  async function ask(request: FinalizeRequest, leftMs: () => number, signal: AbortSignal): Promise<Judged | null> {
    const { reservation_id: id } = request;
    // Such an id would change the path instead of standing in it.
    if (template === undefined || id === "." || id === "..") return null;
    // A token of its own: each is good once.
    const token = await sign(request, options, leftMs());
    if (typeof token !== "string") return null;
    const path = url.pathname.slice(0, -PATH.length) + template.replace(ID, () => encodeURIComponent(id));
    const headers = ["accept", "application/json", ...headersOf(request, token)];
    const answer = await poster.get(path, headers, { signal, timeoutMs: leftMs() });
    return answer.kind === "answered" && answer.status === 200 ? judgeReservation(answer.body, request) : null;
  }

  const sink: AnyTopic["sink"] = {
    kind: "function",
    async deliver({ payload, key, id }, context) {
      const { request, problem } = readStored(payload, key ?? id);
      if (problem !== null) return { kind: "reject", code: "invalid_request", error: problem };
      const outcome = await call(request, context).catch((thrown): Outcome => {
        // Nothing above is expected to throw; if it does, the obligation is kept and tried again.
        const error = oneLine(errorText(thrown), LIMITS.errorBytesMax);
        return { kind: "retry", code: "transport_error", error, alert: true };
      });
      lines.alert(request.reservation_id, outcome);
      return outcome;
    },
    close: () => poster.close(),
  };
  return topic(TOPIC, { sink, retry, timeoutMs, leaseMs, ordering: "none", onUnknown: "retry" });
}

/** What a message of the topic asks for; what cannot be read is a problem like any other, and never sent. */
function readStored(payload: string, id: string): Obligation {
  const value = readObject(payload);
  const { request, problem } = readRequest(value, () => id);
  if (value === null) return { request, problem: "its payload cannot be read" };
  return { request, problem: typeof value.problem === "string" ? value.problem : problem };
}

const ID = "{id}";

/** A path of ours, not an address: the token is for this service and goes nowhere else. */
function checkReservationPath(template: string): void {
  const good = typeof template === "string" && /^\/[\x21-\x7e]*$/.test(template) && template.split(ID).length === 2;
  if (good && !template.startsWith("//") && !/[?#\\]/.test(template)) return;
  const what = `reservationPath must be a path below billingUrl with ${ID} in it, such as /api/internal/reservations/${ID}`;
  throw new MakegoodError("invalid_config", what);
}

/** Where the service lives may have a path of its own; the address of the call comes after it. */
function finalizeUrl(billingUrl: string): URL {
  const refusal = checkUrl(billingUrl, createAddressGuard().trusting);
  if (refusal !== null) throw new MakegoodError("invalid_config", `billingUrl: ${refusal}`);
  const url = new URL(billingUrl);
  url.pathname = url.pathname.replace(/\/+$/, "") + PATH;
  url.search = "";
  url.hash = "";
  return url;
}

/** The token, or why there is none. */
async function sign(request: FinalizeRequest, options: TopicParts, waitMs: number): Promise<string | Outcome> {
  const { s2sSigner, s2sSubjectMode, clock } = options;
  const { tenant_id: tenantId, reservation_id: reservationId } = request;
  try {
    const subject = s2sSubjectMode === "tenant" ? tenantId : null;
    const signing = Promise.resolve(s2sSigner.sign({ subject, tenantId, reservationId }));
    const text = await within(clock, signing, waitMs);
    if (typeof text !== "string") return unsigned(`the signer did not answer within ${waitMs} ms`);
    return HEADER_VALUE.test(text) ? text : unsigned("the signer's answer is not a token");
  } catch (thrown) {
    return unsigned(`the signer failed: ${oneLine(errorText(thrown), SNIPPET_BYTES)}`);
  }
}

/** No retry mends a broken key, so none is spent. Not `unserved`: the signer may fail for one tenant alone, and others must not wait. */
function unsigned(error: string): Outcome {
  return { kind: "retry", code: "signing_failed", error, alert: true, receiver: "unasked", outage: true };
}

function headersOf(request: FinalizeRequest, token: string): string[] {
  const headers = ["authorization", `Bearer ${token}`];
  if (isTraceparent(request.trace_id)) headers.push("traceparent", request.trace_id);
  else if (request.trace_id !== "") headers.push("x-trace-id", headerText(request.trace_id));
  return headers;
}

/** snake_case inside, camelCase outside, the tenant as the account. The cost stays the text that it is. */
function bodyOf({ reservation_id, tenant_id, actual_cost_micro, trace_id }: FinalizeRequest): string {
  const body = { reservationId: reservation_id, accountId: tenant_id, actualCostMicro: actual_cost_micro };
  return JSON.stringify(trace_id === "" ? body : { ...body, traceId: trace_id });
}
