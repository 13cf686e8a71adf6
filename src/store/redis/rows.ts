/**
 * What scripts answer, as messages: views, claims, attempt rows and provenance. Fields are text as it was stored; nothing was
 * encoded again on the way (DF-24).
 */
import type {
  AttemptOutcome,
  AttemptRecord,
  Claim,
  ClaimedMessage,
  MessageView,
  ProvenanceRecord,
  Resolution,
  Status,
  Suspicion,
} from "../../message/message.ts";
import type { Lane } from "../store.ts";

type Text = string | null | undefined;

/** A state is one letter: it says the status and, of a dead letter, the resolution. */
const STATES: Readonly<Record<string, { readonly status: Status; readonly resolution: Resolution | null }>> = {
  p: { status: "pending", resolution: null },
  i: { status: "processing", resolution: null },
  d: { status: "delivered", resolution: null },
  o: { status: "dead", resolution: "open" },
  r: { status: "dead", resolution: "resolved" },
  x: { status: "dead", resolution: "discarded" },
};

export function stateOf(letter: string): { readonly status: Status; readonly resolution: Resolution | null } {
  return STATES[letter] ?? { status: "dead", resolution: "open" };
}

/** The letters of all states that fit. */
export function lettersOf(status?: Status, resolution?: Resolution): string {
  return Object.entries(STATES)
    .filter(([, one]) => (status ?? one.status) === one.status && (resolution ?? one.resolution) === one.resolution)
    .map(([letter]) => letter)
    .join("");
}

const number = (text: Text): number => Number(text ?? 0);
const date = (text: Text): Date | null => (text === null || text === undefined ? null : new Date(Number(text)));

/** Traceparent and schema version, which most messages do not have. */
export function extraText(traceparent: string | null, schemaVersion: number | null): string {
  return traceparent === null && schemaVersion === null ? "" : JSON.stringify([traceparent, schemaVersion]);
}

type Head = Pick<MessageView, "topic" | "tenantId" | "priority" | "orderingKey" | "key" | "traceparent" | "schemaVersion">;

/** Topic, tenant, priority, ordering key, key and extra, with a NUL between them, which none of them holds. */
function headOf(text: string): Head {
  const [topic = "", tenant, priority, okey, key, extra] = text.split("\u0000");
  const [traceparent, schemaVersion] = extra ? (JSON.parse(extra) as [string | null, number | null]) : [null, null];
  return {
    topic,
    tenantId: tenant || null,
    priority: number(priority),
    orderingKey: okey || null,
    key: key || null,
    traceparent,
    schemaVersion,
  };
}

/** The answer of HGETALL as a table; null when there was nothing. */
export function fieldsOf(reply: unknown): Map<string, string> | null {
  const flat = reply as string[];
  if (flat.length === 0) return null;
  const fields = new Map<string, string>();
  for (let i = 0; i < flat.length; i += 2) fields.set(flat[i] as string, flat[i + 1] as string);
  return fields;
}

/** In the order of the `list` script. */
const VIEW_FIELDS = ["h", "c", "st", "n", "g", "r", "du", "he", "di"] as const;

export function viewOfFields(id: string, fields: ReadonlyMap<string, string>): MessageView {
  const failed = fields.get("lf");
  const row = [id, fields.get("p"), failed && fields.get(`h${failed}`), ...VIEW_FIELDS.map((name) => fields.get(name))];
  return viewOfRow(row);
}

/** Id, payload, the last failed attempt, and the fields above. */
export function viewOfRow(row: readonly Text[]): MessageView {
  const [id, payload, failed, head, created, state, attempts, generation, revision, due, held, died] = row;
  const { status, resolution } = stateOf(state as string);
  const last = failed ? attemptOf(failed) : null;
  return {
    id: id as string,
    ...headOf(head as string),
    payload: payload as string,
    createdAt: new Date(number(created)),
    status,
    attempts: number(attempts),
    generation: number(generation),
    revision: number(revision),
    // Without a time of its own it was due when it was made.
    nextAttemptAt: status === "pending" && !held ? date(due ?? created) : null,
    heldReason: held ?? null,
    diedAt: date(died),
    resolution,
    lastError: last?.error ?? null,
    lastCode: last?.code ?? null,
  };
}

/** Six values from `at` on, in the order of the `claim` and `reclaim` scripts. */
export function claimedOf(row: readonly (string | number)[], at: number, lane: string, claim: Claim): ClaimedMessage {
  const rest = row[at + 5] as string;
  const [base, direct, digit] = rest === "" ? [] : rest.split("|");
  return {
    id: row[at] as string,
    claim,
    lane,
    ...headOf(row[at + 3] as string),
    payload: row[at + 4] as string,
    attempt: Number(row[at + 2]),
    base: number(base),
    handedDown: direct === "1",
    // An ordered lane has all of them, so each message says its own.
    ...(lane.startsWith("o") ? digitSays(number(digit)) : kindOf(lane)),
  };
}

/** The digit of a lane: how far its messages are suspected; what failed before and is no suspect has this one. */
const RETRIED = 4;

function kindOf(lane: string): Pick<Lane, "suspicion" | "retried"> {
  return digitSays(lane.startsWith("u") ? Number(lane[1]) : 0);
}

function digitSays(digit: number): Pick<Lane, "suspicion" | "retried"> {
  return { suspicion: (digit === RETRIED ? 0 : digit) as Suspicion, retried: digit === RETRIED };
}

/** What the field `su` of a message says. */
export const suspicionOf = (digit: Text): Pick<Lane, "suspicion" | "retried"> => digitSays(number(digit));

export const letterOf = (status: Status, resolution: Resolution | null): string =>
  lettersOf(status, resolution ?? undefined)[0] as string;

/** The digit of the lane that a message goes back to. */
export function laneDigit(suspicion: Suspicion, retried: boolean): number {
  return suspicion === 0 && retried ? RETRIED : suspicion;
}

/** `attempt|outcome|counted|at|duration|next due|[code, error]`; the last part may hold anything. */
export function attemptOf(text: string): AttemptRecord {
  const [attempt, outcome, counted, at, duration, due, detail] = split(text, 7);
  const [code, error] = detail ? (JSON.parse(detail) as [string | null, string | null]) : [null, null];
  return {
    attempt: number(attempt),
    outcome: outcome as AttemptOutcome,
    counted: counted === "1",
    at: new Date(number(at)),
    durationMs: duration === "" ? null : number(duration),
    code,
    error,
    nextAttemptAt: due === "" ? null : date(due),
  };
}

/** As attemptOf() reads it. */
export function attemptText({ attempt, outcome, counted, at, durationMs, nextAttemptAt, code, error }: AttemptRecord): string {
  const detail = code === null && error === null ? "" : JSON.stringify([code, error]);
  return [attempt, outcome, counted ? 1 : 0, at.getTime(), durationMs ?? "", nextAttemptAt?.getTime() ?? "", detail].join("|");
}

export const provenanceText = ({ at, action, actor, reason }: ProvenanceRecord): string =>
  `${at.getTime()}|${action}|${JSON.stringify([actor, reason])}`;

export function historyOf(fields: ReadonlyMap<string, string> | null): {
  attempts: AttemptRecord[];
  provenance: ProvenanceRecord[];
} {
  const rows = (counter: string, prefix: string): string[] =>
    Array.from({ length: number(fields?.get(counter)) }, (_, i) => fields?.get(`${prefix}${i + 1}`) as string);
  return { attempts: rows("hn", "h").map(attemptOf), provenance: rows("vn", "v").map(provenanceOf) };
}

/** `at|action|[actor, reason]` */
function provenanceOf(text: string): ProvenanceRecord {
  const [at, action, detail] = split(text, 3);
  const [actor, reason] = JSON.parse(detail as string) as [string, string | null];
  return { at: new Date(number(at)), actor, action: action as ProvenanceRecord["action"], reason };
}

function split(text: string, parts: number): string[] {
  const found: string[] = [];
  let from = 0;
  while (found.length < parts - 1) {
    const to = text.indexOf("|", from);
    found.push(text.slice(from, to));
    from = to + 1;
  }
  return [...found, text.slice(from)];
}

/** The lane of a message that has no order and has not been tried. */
export function laneName(topic: string, tenant: string, priority: number): string {
  return `u0:${priority}:${topic}:${tenant}`;
}

/** `u<digit>:<priority>:<topic>:<tenant>`, or `o:0:<topic>:<tenant>`; a topic has no colon, a tenant may. */
export function laneOf(lane: string, dueInMs: number): Lane {
  const [kind = "", priority, topic = ""] = lane.split(":", 3);
  const tenant = lane.slice(kind.length + (priority as string).length + topic.length + 3);
  return {
    lane,
    topic,
    tenantId: tenant === "" ? null : tenant,
    priority: number(priority),
    ...kindOf(lane),
    ordered: kind === "o",
    dueInMs,
  };
}
