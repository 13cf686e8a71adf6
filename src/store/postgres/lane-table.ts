/**
 * Lanes and topics by name and by number, cached, and whose numbers they are. Lanes are made on a connection of our own and never in the
 * caller's transaction: a lane that is rolled back under a cached number would swallow messages. The caches are bounded; what falls
 * out of them is read again.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Suspicion } from "../../message/message.ts";
import type { Connection, Row } from "./connection.ts";
import { createTopicNames, unknownTopic } from "./topic-names.ts";

/** lane.kind: 0 plain, 1 and 2 suspects, and these. */
export const KIND_ORDERED = 3;
export const KIND_RETRIED = 4;

/** What a lane's kind says of its messages; how far an ordered one is suspected stands in its row. */
export function kindSays(kind: number): { readonly suspicion: Suspicion; readonly retried: boolean } {
  return { suspicion: (kind < KIND_ORDERED ? kind : 0) as Suspicion, retried: kind === KIND_RETRIED };
}

export interface LaneInfo {
  readonly id: number;
  readonly topicId: number;
  readonly topic: string;
  readonly tenant: string;
  readonly priority: number;
  readonly kind: number;
}

/** What decides the lane of a message on its way in. */
export interface LaneOf {
  readonly topic: string;
  readonly tenantId: string | null;
  readonly priority: number;
  readonly orderingKey: string | null;
}

export interface LaneTable {
  /** The installation that the numbers belong to, as it was read last. */
  readonly installation: string;
  /** Reads which installation this is, and forgets every number of another. */
  readInstallation(): Promise<void>;
  /** The lanes of messages on their way in, in their order; the missing ones are made in one statement. Throws `unknown_topic`. */
  of(messages: readonly LaneOf[]): Promise<LaneInfo[]>;
  /** Without a round trip, when every part is known already. */
  known(message: LaneOf): LaneInfo | undefined;
  /** The siblings where suspects of these lanes wait, or what failed before (or where they return to), in their order. */
  siblings(messages: readonly { lane: LaneInfo; suspicion: Suspicion; retried: boolean }[]): Promise<LaneInfo[]>;
  byId(ids: Iterable<number>): Promise<Map<number, LaneInfo>>;
  /** These may be gone: they are read again when they are needed. */
  forget(ids: Iterable<number>): void;
  /** Forgets which topics exist: one was put or deleted. */
  forgetTopics(): void;
}

/** Topic, tenant, priority, kind. */
type Place = readonly [topic: string, tenant: string, priority: number, kind: number];

const SELECT = "select l.id, l.topic_id, t.name, l.tenant, l.priority, l.kind";
/** A few megabytes of them. */
export const LANES_KEPT_MAX = 10_000;
const nameOf = ([topic, tenant, priority, kind]: Place): string => `${topic}\u0000${tenant}\u0000${priority}\u0000${kind}`;

/**
 * $1 as JSON; the limit makes each one index descent, whatever sizes the planner assumes: a thousand tenants may come at once.
 */
const wanted = (s: string) => `with x as materialized (select distinct t.id as topic_id, t.name, x.tenant, x.priority, x.kind
  from json_to_recordset($1::text::json) x(topic text, tenant text, priority smallint, kind smallint) join ${s}.topic t on t.name = x.topic)`;
const laneOf = (s: string, one: string) =>
  `select l.* from ${s}.lane l where l.topic_id = ${one}.topic_id and l.tenant = ${one}.tenant and l.priority = ${one}.priority and l.kind = x.kind limit 1`;

const missingSql = (s: string) => `${wanted(s)} insert into ${s}.lane (topic_id, tenant, priority, kind)
  select topic_id, tenant, priority, kind from x where (select l.id from (${laneOf(s, "x")}) l) is null order by 1, 2, 3, 4 on conflict do nothing`;

const findSql = (s: string) =>
  `${wanted(s)} select l.id, l.topic_id, x.name, l.tenant, l.priority, l.kind from x cross join lateral (${laneOf(s, "x")}) l`;

/** Of the same family as a lane that is there: $1 lanes, $2 kinds. By number and not by name: a name may stand for a lane that was retired. */
const siblingsOf = (s: string) => `unnest($1::int[], $2::smallint[]) x(id, kind)
  cross join lateral (select b.* from ${s}.lane b where b.id = x.id limit 1) b`;

const missingSiblingsSql = (s: string) => `insert into ${s}.lane (topic_id, tenant, priority, kind)
  select distinct b.topic_id, b.tenant, b.priority, x.kind from ${siblingsOf(s)}
  where (select l.id from (${laneOf(s, "b")}) l) is null order by 1, 2, 3, 4 on conflict do nothing`;

const findSiblingsSql = (s: string) => `${SELECT}, x.id
  from ${siblingsOf(s)} cross join lateral (${laneOf(s, "b")}) l join ${s}.topic t on t.id = l.topic_id`;

export function createLaneTable(connection: Connection, s: string, monotonicMs: () => number): LaneTable {
  const byName = new Map<string, LaneInfo>();
  const byNumber = new Map<number, LaneInfo>();
  /** Topic → tenant → its plain lane of priority 0: what most messages go to, found without a name being made for each. */
  const plain = new Map<string, Map<string, LaneInfo>>();
  /** Lane and kind → its sibling. */
  const bySibling = new Map<string, LaneInfo>();
  const topics = createTopicNames(connection, s, monotonicMs);
  let installation = "";

  function drop(lane: LaneInfo): void {
    byNumber.delete(lane.id);
    const tenants = plain.get(lane.topic);
    if (tenants?.get(lane.tenant)?.id === lane.id) tenants.delete(lane.tenant);
    const name = nameOf([lane.topic, lane.tenant, lane.priority, lane.kind]);
    if (byName.get(name)?.id === lane.id) byName.delete(name);
  }

  function remember([id, topicId, topic, tenant, priority, kind]: Row): LaneInfo {
    const lane = {
      id: Number(id),
      topicId: Number(topicId),
      topic: topic as string,
      tenant: tenant as string,
      priority: Number(priority),
      kind: Number(kind),
    };
    byNumber.set(lane.id, lane);
    if (lane.kind === 0 && lane.priority === 0) {
      const tenants = plain.get(lane.topic) ?? new Map<string, LaneInfo>();
      plain.set(lane.topic, tenants.set(lane.tenant, lane));
    }
    byName.set(nameOf([lane.topic, lane.tenant, lane.priority, lane.kind]), lane);
    // The oldest goes first, in use or not: reading it again costs one query.
    if (byNumber.size > LANES_KEPT_MAX) drop(byNumber.values().next().value as LaneInfo);
    return lane;
  }

  /** In the order given. */
  async function make(places: readonly Place[]): Promise<LaneInfo[]> {
    const found = new Map<string, LaneInfo>();
    const missing = new Map<string, Place>();
    for (const place of places) {
      const name = nameOf(place);
      const lane = byName.get(name);
      if (lane) found.set(name, lane);
      else missing.set(name, place);
    }
    if (missing.size > 0) {
      const wanted = [...missing.values()].map(([topic, tenant, priority, kind]) => ({ topic, tenant, priority, kind }));
      const values = [JSON.stringify(wanted)];
      const find = async () => {
        for (const row of await connection.rows("find lanes", findSql(s), values, { reads: true })) {
          const lane = remember(row);
          found.set(nameOf([lane.topic, lane.tenant, lane.priority, lane.kind]), lane);
        }
      };
      await find();
      if ([...missing.keys()].some((name) => !found.has(name))) {
        await connection.rows("make lanes", missingSql(s), values);
        await find();
      }
    }
    return places.map((place) => {
      const lane = found.get(nameOf(place));
      if (!lane) throw unknownTopic(place[0]);
      return lane;
    });
  }

  async function siblings(wanted: readonly { readonly lane: LaneInfo; readonly kind: number }[]): Promise<LaneInfo[]> {
    const known = ({ lane, kind }: { readonly lane: LaneInfo; readonly kind: number }) =>
      lane.kind === kind ? lane : bySibling.get(`${lane.id} ${kind}`);
    const missing = [...new Map(wanted.filter((one) => !known(one)).map((one) => [`${one.lane.id} ${one.kind}`, one])).values()];
    if (missing.length > 0) {
      if (bySibling.size + missing.length > LANES_KEPT_MAX) bySibling.clear();
      const values = [missing.map(({ lane }) => lane.id), missing.map(({ kind }) => kind)];
      await connection.rows("make lanes", missingSiblingsSql(s), values);
      for (const row of await connection.rows("find lanes", findSiblingsSql(s), values, { reads: true })) {
        const sibling = remember(row);
        bySibling.set(`${row[6]} ${sibling.kind}`, sibling);
      }
    }
    // A lane with a message in it is there, and so are its siblings; where one is missing all the same, the message stays in the
    // lane that it came from.
    return wanted.map((one) => known(one) ?? one.lane);
  }

  const placeOf = ({ topic, tenantId, priority, orderingKey }: LaneOf): Place => {
    const ordered = topics.ordered(topic, orderingKey);
    return [topic, tenantId ?? "", ordered ? 0 : priority, ordered ? KIND_ORDERED : 0];
  };

  return {
    get installation() {
      return installation;
    },
    async readInstallation() {
      const [row] = await connection.rows("read the installation", `select id::text from ${s}.installation`, [], { reads: true });
      if (!row?.[0]) {
        throw new MakegoodError("schema_outdated", `${s}.installation has no row: insert one (\`insert into … default values\`)`);
      }
      if (row[0] === installation) return;
      installation = row[0];
      byName.clear();
      byNumber.clear();
      plain.clear();
      bySibling.clear();
      topics.forget();
    },
    known(message) {
      if (!topics.known(message.topic)) return undefined;
      const simple = message.priority === 0 && message.orderingKey === null;
      return simple ? plain.get(message.topic)?.get(message.tenantId ?? "") : byName.get(nameOf(placeOf(message)));
    },
    async of(messages) {
      await topics.require(messages.map(({ topic }) => topic));
      return make(messages.map(placeOf));
    },
    siblings: (messages) =>
      siblings(
        messages.map(({ lane, suspicion, retried }) => {
          const back = suspicion === 0 && retried ? KIND_RETRIED : suspicion;
          return { lane, kind: lane.kind === KIND_ORDERED ? KIND_ORDERED : back };
        }),
      ),
    async byId(ids) {
      const found = new Map<number, LaneInfo>();
      const missing: number[] = [];
      for (const id of new Set(ids)) {
        const lane = byNumber.get(id);
        if (lane) found.set(id, lane);
        else missing.push(id);
      }
      if (missing.length > 0) {
        const text = `${SELECT} from ${s}.lane l join ${s}.topic t on t.id = l.topic_id where l.id = any($1::int[])`;
        for (const row of await connection.rows("find lanes", text, [missing], { reads: true })) {
          const lane = remember(row);
          found.set(lane.id, lane);
        }
      }
      return found;
    },
    forget(ids) {
      for (const id of ids) {
        const lane = byNumber.get(id);
        if (lane) drop(lane);
      }
    },
    forgetTopics: topics.forget,
  };
}
