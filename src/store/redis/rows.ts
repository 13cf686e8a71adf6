/**
 * What scripts answer, as messages: views, claims, attempt rows and provenance. Fields are text as it was stored; nothing was
 * encoded again on the way (DF-24).
 */
import type {
  AttemptOutcome,
  AttemptRecord,
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

function extraOf(text: Text): { traceparent: string | null; schemaVersion: number | null } {
  const [traceparent, schemaVersion] = text ? (JSON.parse(text) as [string | null, number | null]) : [null, null];
  return { traceparent, schemaVersion };
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
const VIEW_FIELDS = ["tp", "te", "ke", "pr", "ok", "f", "c", "st", "n", "g", "r", "du", "he", "di"] as const;

export function viewOfFields(id: string, fields: ReadonlyMap<string, string>): MessageView {
  const failed = fields.get("lf");
  const row = [id, fields.get("p"), failed && fields.get(`h${failed}`), ...VIEW_FIELDS.map((name) => fields.get(name))];
  return viewOfRow(row);
}

/** Id, payload, the last failed attempt, and the fields above. */
export function viewOfRow(row: readonly Text[]): MessageView {
  const [id, payload, failed, topic, tenant, key, priority, okey, extra, created, state, attempts, generation, revision, due] =
    row;
  const [held, died] = row.slice(15);
  const { status, resolution } = stateOf(state as string);
  const last = failed ? attemptOf(failed) : null;
  return {
    id: id as string,
    topic: topic as string,
    tenantId: tenant ?? null,
    key: key ?? null,
    orderingKey: okey ?? null,
    priority: number(priority),
    payload: payload as string,
    ...extraOf(extra),
    createdAt: new Date(number(created)),
    status,
    attempts: number(attempts),
    generation: number(generation),
    revision: number(revision),
    dueAt: status === "pending" && !held ? date(due) : null,
    heldReason: held ?? null,
    diedAt: date(died),
    resolution,
    lastError: last?.error ?? null,
    lastCode: last?.code ?? null,
  };
}

/** In the order of the `claim` and `reclaim` scripts; a claim's lease and token are the caller's, a reclaim's stand at the end. */
export function claimedOf(row: readonly Text[], lease: string, token: string): ClaimedMessage {
  const [id, lane, attempt, topic, tenant, key, priority, okey, payload, extra, base, direct, suspicion, ownLease, ownToken] =
    row;
  return {
    id: id as string,
    claim: { lease: ownLease ?? lease, token: ownToken ?? token },
    lane: lane as string,
    topic: topic as string,
    tenantId: tenant ?? null,
    priority: number(priority),
    key: key ?? null,
    orderingKey: okey ?? null,
    payload: payload as string,
    ...extraOf(extra),
    attempt: number(attempt),
    base: number(base),
    handedDown: direct === "1",
    suspicion: number(suspicion) as Suspicion,
  };
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
    nextDueAt: due === "" ? null : date(due),
  };
}

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

/** `u<suspicion>:<priority>:<topic>:<tenant>`, or `o:0:<topic>:<tenant>`; a topic has no colon, a tenant may. */
export function laneOf(lane: string, dueInMs: number): Lane {
  const [kind = "", priority, topic = ""] = lane.split(":", 3);
  const tenant = lane.slice(kind.length + (priority as string).length + topic.length + 3);
  return {
    lane,
    topic,
    tenantId: tenant === "" ? null : tenant,
    priority: number(priority),
    suspicion: number(kind.slice(1) || "0") as Suspicion,
    ordered: kind === "o",
    dueInMs,
  };
}
