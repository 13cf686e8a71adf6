/**
 * MOVE in Redis: pages by id, newest first, over the sets of every topic and state, so that a message is met however it moves; what cannot be
 * read is left out and stays in quarantine.
 */
import { MakegoodError } from "../../message/errors.ts";
import { lastFailure, type Movable, type MovableMessage, type MovableRead, type PutResult } from "../movable.ts";
import type { Db } from "./db.ts";
import { idsBelow } from "./read.ts";
import {
  attemptText,
  extraText,
  fieldsOf,
  historyOf,
  laneDigit,
  letterOf,
  lettersOf,
  provenanceText,
  suspicionOf,
  viewOfFields,
} from "./rows.ts";
import { PUT_MOVABLE, READ_MOVABLE } from "./scripts/movable.ts";

type Reply = [id: string, fields?: string[], settled?: string, key?: string];

const OPEN = lettersOf().replace(/[drx]/g, "");
/** Redis does nothing else while a script runs, and Lua's stack holds some thousand values. */
const PIECE = 100;

export function createMovable(db: Db, onWork: (lanes: readonly string[]) => void): Movable {
  async function details(ids: readonly string[], bytesMax: number): Promise<{ seen: number; messages: MovableMessage[] }> {
    if (ids.length === 0) return { seen: 0, messages: [] };
    const reply = (await db.run(READ_MOVABLE, [db.keys.key("settled"), ...ids.map(db.keys.message)], [bytesMax])) as Reply[];
    return { seen: reply.length, messages: reply.flatMap((row) => movableOfReply(row) ?? []) };
  }

  async function read({ all, after = "", limit, bytesMax }: MovableRead) {
    const { ids, reached } = await idsBelow(db, all ? lettersOf() : OPEN, after, Math.min(limit, PIECE));
    const { seen, messages } = await details(ids, bytesMax);
    const next = seen < ids.length ? (ids[seen - 1] as string) : reached;
    return { messages: messages.filter((one) => all || one.settledAt === null), next: next === "" ? null : next };
  }

  async function find(ids: readonly string[]): Promise<MovableMessage[]> {
    const found: MovableMessage[] = [];
    for (let from = 0; from < ids.length; from += PIECE) {
      found.push(...(await details(ids.slice(from, from + PIECE), Number.MAX_SAFE_INTEGER)).messages);
    }
    return found;
  }

  async function put(messages: readonly MovableMessage[]): Promise<PutResult[]> {
    if (messages.some(({ status }) => status === "processing")) {
      throw new MakegoodError("invalid_message", "a message in flight cannot be put: say first what became of it");
    }
    const results: PutResult[] = [];
    for (let from = 0; from < messages.length; from += PIECE)
      results.push(...(await putPiece(messages.slice(from, from + PIECE))));
    return results;
  }

  async function putPiece(messages: readonly MovableMessage[]): Promise<PutResult[]> {
    const keys = ["dedupe", "lanes", "accepted", "settled", "meta"].map(db.keys.key);
    const reply = (await db.run(
      PUT_MOVABLE,
      [...keys, ...messages.map(({ id }) => db.keys.message(id))],
      messages.flatMap(argsOf),
    )) as string[];
    const [first = ""] = reply;
    if (first.startsWith("t"))
      throw new MakegoodError("unknown_topic", `there is no topic ${first.slice(1)}`, { topic: first.slice(1) });
    if (reply.some((one) => one.startsWith("p"))) onWork([]);
    return reply.map((one) => ({ kind: KINDS[one[0] as keyof typeof KINDS], id: one.slice(1) }));
  }

  return { read, find, put };
}

const KINDS = { p: "put", h: "present", d: "duplicate", c: "conflict" } as const;

function movableOfReply([id, flat, settled, key]: Reply): MovableMessage | null {
  const fields = flat && fieldsOf(flat);
  if (!fields) return null;
  const { lastError, lastCode, ...shown } = viewOfFields(id, fields);
  const { attempts, provenance } = historyOf(fields);
  const waits = shown.status === "pending" || shown.status === "processing";
  return {
    ...shown,
    base: waits ? Number(fields.get("ba") ?? 0) : 0,
    ...suspicionOf(waits ? fields.get("su") : undefined),
    handedDown: fields.get("dt") === "1",
    place: shown.orderingKey === null ? null : Number(fields.get("sq") ?? 0),
    blocksOrder: key === `b${id}`,
    settledAt: settled ? new Date(Number(settled)) : null,
    history: attempts,
    provenance,
  };
}

/** In the order of the script. */
function argsOf(one: MovableMessage): string[] {
  const { topic, tenantId, priority, orderingKey, key, status, resolution, suspicion, retried, place, history, provenance } = one;
  const digit = String(laneDigit(suspicion, retried));
  const due = status === "pending" && one.heldReason === null ? String((one.nextAttemptAt ?? one.createdAt).getTime()) : "";
  const head = [
    topic,
    tenantId ?? "",
    String(priority),
    orderingKey ?? "",
    key ?? "",
    extraText(one.traceparent, one.schemaVersion),
  ];
  const stands = [letterOf(status, resolution), digit, due, String(place ?? 0), one.blocksOrder ? "1" : "0"];
  const failed = lastFailure(history);
  const fields: Record<string, string | number | undefined> = {
    c: one.createdAt.getTime(),
    n: one.attempts || undefined,
    ba: one.base || undefined,
    g: one.generation || undefined,
    r: one.revision || undefined,
    du: due || undefined,
    he: one.heldReason ?? undefined,
    di: one.diedAt?.getTime(),
    su: digit === "0" ? undefined : digit,
    dt: one.handedDown ? 1 : undefined,
    hn: history.length || undefined,
    lf: failed ? history.lastIndexOf(failed) + 1 : undefined,
    vn: provenance.length || undefined,
  };
  for (const [i, row] of history.entries()) fields[`h${i + 1}`] = attemptText(row);
  for (const [i, row] of provenance.entries()) fields[`v${i + 1}`] = provenanceText(row);
  const flat = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name, String(value)]));
  return [...head, ...stands, String(one.settledAt?.getTime() ?? ""), one.payload, String(flat.length / 2), ...flat];
}
