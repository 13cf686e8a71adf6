/**
 * What this process knows of the leases it holds: which messages, in which order, from which lanes, and which of them are still
 * open. It only chooses the cheaper statement and spares the database questions; safety is the token there, not this memory.
 */
import type { Claim, ClaimedMessage } from "../../message/message.ts";
import type { Settle } from "../../message/settlement.ts";

export interface MessageFacts {
  readonly lane: number;
  readonly base: number;
  /** About how large its payload is; null: not known. */
  readonly bytes: number | null;
}

interface OpenLease {
  readonly ids: readonly string[];
  readonly lanes: readonly number[];
  readonly bases: readonly number[];
  readonly bytes: readonly number[];
  readonly ordered: boolean;
  /** Claimed by another process, which may have settled some of it: which messages are still open is not known. */
  readonly foreign: boolean;
  /** Made when a lease is settled in parts: id → place in the lists above. */
  open: Map<string, number> | undefined;
}

export interface OpenLeases {
  claimed(messages: readonly ClaimedMessage[], ordered: (message: ClaimedMessage) => boolean): void;
  /** A lease that another instance claimed. */
  learn(claim: Claim, ids: readonly string[], lanes: readonly number[], bases: readonly number[]): void;
  knows(claim: Claim): boolean;
  /** By lease and token, in the order given. */
  group(settles: readonly Settle[]): Map<string, Settle[]>;
  /** All of a lease, all delivered, nothing of it settled before, no ordering keys. */
  isWholeAndPlain(group: readonly Settle[]): boolean;
  /** All delivered, no ordering keys. */
  isPlain(group: readonly Settle[]): boolean;
  /** Durations in the order of the lease's ids; null when all are below a millisecond. */
  durations(group: readonly Settle[]): string | null;
  /** Nothing of the lease stays open after this group. */
  endsWith(group: readonly Settle[]): boolean;
  /** Undefined: not a message of the lease it names, or settled already. */
  factsOf(one: Settle): MessageFacts | undefined;
  settled(settles: readonly Settle[]): void;
}

const nameOf = ({ lease, token }: Claim) => `${lease} ${token}`;

function byClaim<T extends { readonly claim: Claim }>(all: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  let last: T[] | undefined;
  let lastClaim: Claim | undefined;
  for (const one of all) {
    // Messages of one batch share one claim object and usually come together.
    if (one.claim === lastClaim && last) {
      last.push(one);
      continue;
    }
    const name = nameOf(one.claim);
    last = groups.get(name) ?? [];
    last.push(one);
    groups.set(name, last);
    lastClaim = one.claim;
  }
  return groups;
}

const openOf = (lease: OpenLease): Map<string, number> => {
  lease.open ??= new Map(lease.ids.map((id, place) => [id, place]));
  return lease.open;
};

export function createOpenLeases(): OpenLeases {
  const leases = new Map<string, OpenLease>();
  const of = (group: readonly Settle[]) => leases.get(nameOf((group[0] as Settle).claim));
  const isPlain = (group: readonly Settle[]) =>
    of(group)?.ordered === false &&
    group.every(({ settlement }) => settlement.kind === "delivered" && settlement.outcome === "delivered");

  return {
    claimed(messages, ordered) {
      for (const [name, group] of byClaim(messages)) {
        leases.set(name, {
          ids: group.map((m) => m.id),
          lanes: group.map((m) => Number(m.lane)),
          bases: group.map((m) => m.base),
          bytes: group.map((m) => m.payload.length),
          ordered: group.some(ordered),
          foreign: false,
          open: undefined,
        });
      }
    },
    learn(claim, ids, lanes, bases) {
      leases.set(nameOf(claim), { ids, lanes, bases, bytes: [], ordered: true, foreign: true, open: undefined });
    },
    knows: (claim) => leases.has(nameOf(claim)),
    group: byClaim,
    isPlain,
    isWholeAndPlain(group) {
      const lease = of(group);
      if (!lease || lease.open || lease.ids.length !== group.length || !isPlain(group)) return false;
      if (group.every((one, i) => one.id === lease.ids[i])) return true;
      const ids = new Set(group.map((one) => one.id));
      return ids.size === group.length && lease.ids.every((id) => ids.has(id));
    },
    durations(group) {
      const ms = (one: Settle | undefined) => Math.round(one?.durationMs ?? 0);
      if (group.every((one) => ms(one) === 0)) return null;
      const ids = of(group)?.ids ?? [];
      if (group.every((one, i) => one.id === ids[i])) return group.map(ms).join(",");
      const byId = new Map(group.map((one) => [one.id, one]));
      return ids.map((id) => ms(byId.get(id))).join(",");
    },
    endsWith(group) {
      const lease = of(group);
      if (!lease || lease.foreign) return false;
      const ids = new Set(group.map((one) => one.id));
      for (const id of openOf(lease).keys()) if (!ids.has(id)) return false;
      return true;
    },
    factsOf(one) {
      const lease = leases.get(nameOf(one.claim));
      const place = lease && openOf(lease).get(one.id);
      return lease && place !== undefined
        ? { lane: lease.lanes[place] as number, base: lease.bases[place] as number, bytes: lease.bytes[place] || null }
        : undefined;
    },
    settled(settles) {
      for (const [name, group] of byClaim(settles)) {
        const lease = leases.get(name);
        if (!lease) continue;
        if (!lease.open && group.length >= lease.ids.length) leases.delete(name);
        else {
          const open = openOf(lease);
          for (const one of group) open.delete(one.id);
          if (open.size === 0) leases.delete(name);
        }
      }
    },
  };
}
