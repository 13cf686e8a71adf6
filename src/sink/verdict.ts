/**
 * From an HTTP answer to an outcome: what the sinks on HTTP share. The status decides; the body only explains.
 */
import { DELIVERED, DUPLICATE, type Outcome } from "../message/outcome.ts";
import type { SinkConfig } from "../message/topic.ts";
import type { Answer } from "./exchange.ts";
import { retryAfterMs } from "./retry-after.ts";

export type StatusMap = NonNullable<SinkConfig["statusMap"]>;
export type Verdict = StatusMap[string] | "disable";

/** What a status means to an http sink unless its statusMap says otherwise. */
export function httpVerdict(status: number): Verdict {
  if (status >= 200 && status < 300) return "delivered";
  if (status >= 500) return "retry";
  switch (status) {
    case 401: // Credentials are put right by a person; the message is fine (the outcome carries an alert).
    case 403:
    case 408:
    case 409: // "In flight" to many receivers, "duplicate" to some: the statusMap knows, the default is the safe one.
    case 425:
    case 429:
      return "retry";
    default:
      return "reject";
  }
}

/**
 * This address serves nothing of the kind (moved, not there, another method, gone): a setting of ours is wrong, for every
 * message. Presets take it like refused credentials, retry with an alert, unless the answer names the message itself.
 */
export function isAddressFault(status: number): boolean {
  return (status >= 300 && status < 400) || status === 404 || status === 405 || status === 410 || status === 421;
}

/** Makes an answer into an outcome; `verdictOf` is where the sinks on HTTP differ. */
export function outcomeOfAnswer(answer: Answer, verdictOf: (status: number) => Verdict, wallMs: number): Outcome {
  if (answer.kind === "failed") return answer.outcome;
  const { status } = answer;
  const kind = verdictOf(status);
  if (kind === "delivered") return DELIVERED;
  if (kind === "duplicate") return DUPLICATE;
  const code = `http_${status}`;
  const error = answer.body === "" ? `the receiver answered ${status}` : `the receiver answered ${status}: ${answer.body}`;
  if (kind !== "retry") return { kind, code, error };
  const alert = status === 401 || status === 403;
  // "In flight here already": an answer, and none of a receiver in trouble (N4).
  const receiver = status === 409 ? ("answers" as const) : undefined;
  return { kind, code, error, retryAfterMs: retryAfterMs(answer.retryAfter, wallMs), alert, receiver };
}
