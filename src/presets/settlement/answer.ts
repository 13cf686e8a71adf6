/**
 * What the billing service's answer means: the kernel's table of statuses, except 409, which is only as good as what stands in
 * it. The same amount and a settled state is a duplicate; another amount, account or end is a dead letter for a person. The same
 * comparison judges a reservation that was read because a 409 carried nothing. The words are ours: nothing of the body is kept.
 */
import { isObject, readObject } from "../../message/json.ts";
import { DUPLICATE, type Outcome } from "../../message/outcome.ts";
import type { Answer } from "../../sink/exchange.ts";
import { httpVerdict, isAddressFault, outcomeOfAnswer } from "../../sink/verdict.ts";
import { parseMicro, readMicro } from "./money.ts";
import type { FinalizeRequest } from "./request.ts";

export interface Judged {
  readonly outcome: Outcome;
  /** A 409 whose text could not be compared: taken as a duplicate, and counted. */
  readonly unverified: boolean;
  /** The amount in it was not canonical and and its meaning was clear. */
  readonly normalised: boolean;
}

type Answered = Extract<Answer, { kind: "answered" }>;

export function judge(answer: Answered, request: FinalizeRequest, wallMs: number): Judged {
  const { status } = answer;
  if (status === 409) return judgeReservation(answer.body, request);
  const elsewhere = isAddressFault(status) && !isNamed(answer.body, request);
  const outcome = elsewhere ? misplaced(status) : outcomeOfAnswer({ ...answer, body: "" }, httpVerdict, wallMs);
  return { outcome, unverified: false, normalised: false };
}

/** A wrong address must not make dead letters of all that is owed, however long it stays wrong: a person puts it right. */
function misplaced(status: number): Outcome {
  const error = `the receiver answered ${status}: it settles nothing at this address; check billingUrl`;
  return { kind: "retry", code: `http_${status}`, error, alert: true, outage: true };
}

/** A reservation that the service does not know or that is gone says so in its answer. */
function isNamed(body: string, request: FinalizeRequest): boolean {
  const said = read(body);
  if (said === null) return false;
  if (pick(said, ["reservationId", "reservation_id"]) === request.reservation_id) return true;
  return ["error", "code", "type", "title", "message"].some((name) => /reservation/i.test(String(pick(said, [name]) ?? "")));
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));
const FINALIZED = words("finalized finalised settled committed completed idempotent already_finalized finalize_acked");
/** Being settled, or not settled at all: in both cases to be asked again. */
const UNDER_WAY = words("pending processing in_progress finalizing settling finalize_pending reserved reserve_held held");
const ENDED_OTHERWISE = words("finalize_failed released voided void cancelled canceled expired refunded failed rejected");

/** `text`: the body of a 409, or the reservation itself. Agreement needs both amount and state; one difference is enough to disagree. */
export function judgeReservation(text: string, request: FinalizeRequest): Judged {
  const said = read(text);
  if (said === null) return { outcome: DUPLICATE, unverified: true, normalised: false };
  const amount = readMicro(pick(said, ["actualCostMicro", "actual_cost_micro", "amountMicro", "amount_micro"]));
  const normalised = amount?.normalised === true;
  const taken = (outcome: Outcome): Judged => ({ outcome, unverified: false, normalised });
  const disagrees = (error: string): Judged => taken({ kind: "reject", code: "settled_differently", error });

  const differs = (name: string, names: readonly string[], expected: string): string | null => {
    const value = pick(said, names);
    return typeof value === "string" && value !== expected ? `it belongs to another ${name}` : null;
  };
  const other =
    differs("reservation", ["reservationId", "reservation_id"], request.reservation_id) ??
    differs("account", ["accountId", "account_id", "tenantId", "tenant_id"], request.tenant_id);
  if (other !== null) return disagrees(`the receiver knows this reservation, but ${other}`);
  if (amount !== null && amount.amount !== parseMicro(request.actual_cost_micro))
    return disagrees(`the receiver settled ${amount.amount} micro, we owe ${request.actual_cost_micro}`);
  const state = pick(said, ["state", "status"]);
  const word = typeof state === "string" ? state.toLowerCase() : "";
  if (ENDED_OTHERWISE.has(word)) return disagrees(`the receiver says that the reservation is ${word}`);
  if (UNDER_WAY.has(word)) {
    const error = `the receiver says that the settlement is ${word}`;
    return taken({ kind: "retry", code: "settlement_in_progress", error, receiver: "answers" });
  }
  return { outcome: DUPLICATE, unverified: amount === null || !FINALIZED.has(word), normalised };
}

/** The object in the answer: at the top, or under the names that billing services put it. */
function read(body: string): Record<string, unknown> | null {
  const top = readObject(body);
  const inner = top && pick(top, ["reservation", "settlement", "data"]);
  return isObject(inner) ? inner : top;
}

function pick(object: Record<string, unknown>, names: readonly string[]): unknown {
  for (const name of names) if (Object.hasOwn(object, name)) return object[name];
  return undefined;
}
