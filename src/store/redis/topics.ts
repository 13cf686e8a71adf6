/**
 * The topics seam in Redis: one hash for each topic, each change one script, so that all workers agree.
 */
import { LIMITS } from "../../message/limits.ts";
import {
  BREAKER_CLOSED,
  type BreakerState,
  type TopicDefinition,
  type TopicRecord,
  type TopicSource,
} from "../../message/topic.ts";
import type { TopicDelete, TopicStore } from "../topics.ts";
import { createAllot } from "./allot.ts";
import type { Db } from "./db.ts";
import type { Epoch } from "./epoch.ts";
import {
  DELETE_TOPIC,
  DISABLE_TOPIC,
  PAUSE_TOPIC,
  PROBE_TOPIC,
  PUT_TOPIC,
  READ_TOPICS,
  RESET_TOPIC,
  TRIP_TOPIC,
} from "./scripts/topics.ts";
import { createWorkers } from "./workers.ts";

type Row = readonly (string | null)[];

/** The same text for definitions that mean the same: members sorted, absent and undefined alike. */
function definitionText(definition: TopicDefinition): string {
  return JSON.stringify(definition, (_, member: unknown) =>
    member !== null && typeof member === "object" && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

function recordOf(row: Row, now: number): TopicRecord {
  const [definition, source, revision, paused, disabled] = row;
  return {
    ...(JSON.parse(definition as string) as TopicDefinition),
    source: source as TopicSource,
    revision: Number(revision),
    paused: paused === "1",
    disabledReason: disabled ?? null,
    breaker: breakerOf(row, now),
  };
}

function breakerOf(row: Row, now: number): BreakerState {
  const [open, probe, tripsText, reason, held] = row.slice(5);
  const trips = Number(tripsText ?? 0);
  const probeInMs = Math.max(0, Number(probe ?? open ?? now) - now);
  const tenants = Object.entries(JSON.parse(held ?? "{}") as Record<string, string>).map(([tenantId, reason]) => ({
    tenantId,
    reason,
  }));
  if (open === null || open === undefined) return { ...BREAKER_CLOSED, probeInMs, trips, tenants };
  return { state: probe ? "half_open" : "open", probeInMs, trips, reason: reason ?? null, tenants };
}

/** `onChange` hears in this process that a topic changed; `epoch` remembers what is declared. */
export function createTopics(db: Db, onChange: () => void, epoch: Pick<Epoch, "learn" | "forget" | "paused">): TopicStore {
  const keys = (name: string) => [db.keys.topic(name), db.keys.key("topics")];
  async function change<T>(result: Promise<T>): Promise<T> {
    const reply = await result;
    onChange();
    return reply;
  }
  return {
    async put(definition, source) {
      const args = [definition.name, definitionText(definition), definition.ordering, source];
      const [kind, now, row] = (await change(db.run(PUT_TOPIC, keys(definition.name), args))) as [string, number, Row];
      if (kind === "read_only") return "read_only";
      epoch.learn(definition, source);
      return recordOf(row, now);
    },
    async get(name, at) {
      const [now, row] = (await db.run(READ_TOPICS, keys(name), [name], at)) as [number, Row?];
      return row ? recordOf(row, now) : null;
    },
    async list(at) {
      const [now, ...rows] = (await db.run(READ_TOPICS, [db.keys.key("topics")], [""], at)) as [number, ...Row[]];
      for (const row of rows) epoch.learn(JSON.parse(row[0] as string) as TopicDefinition, row[1] as TopicSource, row[3] === "1");
      return rows.map((row) => recordOf(row, now)).sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    async delete(name, source) {
      const result = (await change(db.run(DELETE_TOPIC, keys(name), [name, source]))) as TopicDelete;
      if (result === "deleted" || result === "not_found") epoch.forget(name);
      return result;
    },
    async pause(name, paused) {
      const [now, row] = (await change(db.run(PAUSE_TOPIC, keys(name), [name, paused ? 1 : 0]))) as [number?, Row?];
      if (row) epoch.paused(name, paused);
      return row ? recordOf(row, now as number) : null;
    },
    ...createWorkers(db),
    ...createAllot(db),
    disable: async (name, reason) => void (await change(db.run(DISABLE_TOPIC, keys(name), [name, reason]))),
    async trip(name, cooldownMs, reason, of) {
      const { heldReasonCharsMax, heldTenantsMax } = LIMITS;
      const args = [
        name,
        cooldownMs,
        reason,
        of?.tenantId ?? "",
        reason.slice(0, heldReasonCharsMax),
        heldTenantsMax,
        of?.byHand ? 1 : 0,
      ];
      const [now, row] = (await change(db.run(TRIP_TOPIC, keys(name), args, of))) as [number?, Row?];
      return row ? breakerOf(row, now as number) : BREAKER_CLOSED;
    },
    probe: async (name, _owner, leaseMs, of) =>
      (await db.run(PROBE_TOPIC, keys(name), [name, leaseMs, of?.tenantId ?? "", of?.restMs ?? ""], of)) === 1,
    async reset(name, of) {
      if ((await db.run(RESET_TOPIC, keys(name), [name, of?.tenantId ?? ""])) === 1) onChange();
    },
  };
}
