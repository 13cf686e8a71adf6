/**
 * Calls of ENQUEUE as the arguments of a script: a short one for what most callers send, one for everything else. Both decide and
 * write alike, and answer in the order of the messages given.
 */
import type { NewMessage } from "../../message/message.ts";
import type { Db } from "./db.ts";
import { extraText, laneName } from "./rows.ts";
import { ENQUEUE } from "./scripts/enqueue.ts";
import { ENQUEUE_PLAIN } from "./scripts/enqueue-plain.ts";

/** The keys that both scripts begin with. */
const FIXED = ["dedupe", "lanes", "accepted", "waiters"];

export interface EnqueueCall {
  readonly messages: readonly NewMessage[];
  readonly each: boolean;
  readonly now: Date | undefined;
}

/** What became of the messages (none: all were accepted), and the lanes that may have new work. */
export type EnqueueReply = readonly [results: readonly string[], lanes: readonly string[]];

export function runEnqueue(db: Db, calls: readonly EnqueueCall[]): Promise<EnqueueReply> {
  const [{ messages, now }] = calls as readonly [EnqueueCall];
  const [{ topic }] = messages as readonly [NewMessage];
  const lanes = plainLanes(topic, calls);
  return lanes ? runPlain(db, topic, lanes, now) : runAny(db, calls);
}

interface PlainLane {
  readonly lane: string;
  /** What its keys begin with: they are unique for a tenant of a topic. */
  readonly scope: string;
  readonly priority: string;
  readonly messages: NewMessage[];
  /** Which of the calls brought each message. */
  readonly at: number[];
}

/** The calls by lane, or null when the short script cannot take them. */
function plainLanes(topic: string, calls: readonly EnqueueCall[]): readonly PlainLane[] | null {
  const lanes = new Map<string, PlainLane>();
  const names = new Set<string>();
  let named = 0;
  for (let at = 0; at < calls.length; at++) {
    const { messages } = calls[at] as EnqueueCall;
    const one = messages[0] as NewMessage;
    if (messages.length > 1 || one.topic !== topic || one.orderingKey !== null || unusualText(one) !== "") return null;
    const tenant = one.tenantId ?? "";
    const name = laneName(topic, tenant, one.priority);
    let lane = lanes.get(name);
    if (lane === undefined) {
      lane = { lane: name, scope: `${topic}\u0000${tenant}\u0000`, priority: String(one.priority), messages: [], at: [] };
      lanes.set(name, lane);
    }
    lane.messages.push(one);
    lane.at.push(at);
    names.add(one.id);
    named++;
    if (one.key === null) continue;
    names.add(lane.scope + one.key);
    named++;
  }
  // Twice the same id or key: which call was first decides.
  return names.size === named ? [...lanes.values()] : null;
}

async function runPlain(db: Db, topic: string, lanes: readonly PlainLane[], now: Date | undefined): Promise<EnqueueReply> {
  const { keys } = db;
  const names = [...FIXED.map(keys.key), keys.topic(topic), keys.key(`s:p:${topic}`)];
  const args = [topic, String(lanes.length)];
  for (const { lane, scope, priority, messages } of lanes) {
    names.push(keys.lane(lane));
    args.push(scope, priority, String(messages.length));
  }
  for (const { messages } of lanes) {
    for (const { id, key, payload } of messages) {
      names.push(keys.message(id));
      args.push(key ?? "", payload);
    }
  }
  const results = (await db.run(ENQUEUE_PLAIN, names, args, { now })) as string[];
  const laneNames = lanes.map(({ lane }) => lane);
  if (results.length === 0) return [results, laneNames];
  const inOrder: string[] = [];
  for (const [i, at] of lanes.flatMap((lane) => lane.at).entries()) inOrder[at] = results[i] as string;
  return [inOrder, laneNames];
}

async function runAny(db: Db, calls: readonly EnqueueCall[]): Promise<EnqueueReply> {
  const { key, message, topic } = db.keys;
  const names = FIXED.map(key);
  const groups = new Map<string, string>();
  const groupArgs: string[] = [];
  const topics = new Set<string>();
  const args: string[] = [];
  let sizes = "";
  let singles = true;
  for (const { messages, each } of calls) {
    sizes += `${each ? "e" : "a"}${messages.length}`;
    if (messages.length !== 1) singles = false;
    for (const one of messages) {
      const { tenantId, orderingKey } = one;
      const name = `${one.topic}\u0000${tenantId ?? ""}\u0000${one.priority}\u0000${orderingKey ?? ""}`;
      let group = groups.get(name);
      if (group === undefined) {
        group = String(groups.size + 1);
        groups.set(name, group);
        groupArgs.push(one.topic, tenantId ?? "", String(one.priority), orderingKey ?? "");
        topics.add(one.topic);
      }
      names.push(message(one.id));
      args.push(group, one.key ?? "", unusualText(one), one.payload);
    }
  }
  for (const name of topics) names.push(topic(name));
  const all = [singles ? "" : sizes, String(groups.size), ...groupArgs, ...args];
  return (await db.run(ENQUEUE, names, all, { now: calls[0]?.now })) as EnqueueReply;
}

/** What most messages do not have: a delay, a direct try, extra fields. */
function unusualText({ delayMs, directTry: direct, traceparent, schemaVersion }: NewMessage): string {
  const extra = extraText(traceparent, schemaVersion);
  if (delayMs === 0 && !direct && extra === "") return "";
  const tried = direct ? `${direct.rejected ? "x" : "r"}${JSON.stringify([direct.code, direct.error])}` : "";
  return `${delayMs}\n${tried}\n${extra}`;
}
