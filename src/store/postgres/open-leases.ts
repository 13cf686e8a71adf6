/**
 * What this process knows of the leases it holds: which messages, in which order, and which of them are still open. It only
 * chooses the cheaper statement and says when a lease row can go; safety is the token in the database, not this memory.
 */
import type { Claim, ClaimedMessage } from "../../message/message.ts";
import type { Settle } from "../../message/settlement.ts";

interface OpenLease {
  readonly ids: readonly string[];
  readonly lanes: readonly string[];
  readonly ordered: boolean;
  /** Made when a lease is settled in parts. */
  open: Set<string> | undefined;
}

export interface OpenLeases {
  claimed(messages: readonly ClaimedMessage[], ordered: (message: ClaimedMessage) => boolean): void;
  /** By lease and token, in the order given. */
  group(settles: readonly Settle[]): Map<string, Settle[]>;
  /** All of a lease, all delivered, nothing of it settled before, no ordering keys. */
  isWholeAndPlain(group: readonly Settle[]): boolean;
  /** Durations in the order of the lease's ids; null when all are below a millisecond. */
  durations(group: readonly Settle[]): string | null;
  /** Nothing of the lease stays open after this group. */
  endsWith(group: readonly Settle[]): boolean;
  /** The lane a message was claimed from, while its lease is known here. */
  laneOf(one: Settle): number | undefined;
  settled(settles: readonly Settle[]): void;
}

const nameOf = ({ lease, token }: Claim) => `${lease} ${token}`;

function byClaim<T extends { readonly claim: Claim }>(all: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const name = nameOf(one.claim);
    const group = groups.get(name);
    if (group) group.push(one);
    else groups.set(name, [one]);
  }
  return groups;
}

export function createOpenLeases(): OpenLeases {
  const leases = new Map<string, OpenLease>();

  const openOf = (lease: OpenLease) => {
    lease.open ??= new Set(lease.ids);
    return lease.open;
  };

  return {
    claimed(messages, ordered) {
      for (const [name, group] of byClaim(messages)) {
        leases.set(name, {
          ids: group.map((m) => m.id),
          lanes: group.map((m) => m.lane),
          ordered: group.some(ordered),
          open: undefined,
        });
      }
    },
    group: byClaim,
    isWholeAndPlain(group) {
      const lease = leases.get(nameOf((group[0] as Settle).claim));
      if (!lease || lease.ordered || lease.open || lease.ids.length !== group.length) return false;
      if (!group.every(({ settlement }) => settlement.kind === "delivered" && settlement.outcome === "delivered")) return false;
      if (group.every((one, i) => one.id === lease.ids[i])) return true;
      const ids = new Set(group.map((one) => one.id));
      return ids.size === group.length && lease.ids.every((id) => ids.has(id));
    },
    durations(group) {
      const ms = (one: Settle | undefined) => Math.round(one?.durationMs ?? 0);
      if (group.every((one) => ms(one) === 0)) return null;
      const lease = leases.get(nameOf((group[0] as Settle).claim)) as OpenLease;
      if (group.every((one, i) => one.id === lease.ids[i])) return group.map(ms).join(",");
      const byId = new Map(group.map((one) => [one.id, one]));
      return lease.ids.map((id) => ms(byId.get(id))).join(",");
    },
    endsWith(group) {
      const lease = leases.get(nameOf((group[0] as Settle).claim));
      if (!lease) return false;
      const ids = new Set(group.map((one) => one.id));
      for (const id of openOf(lease)) if (!ids.has(id)) return false;
      return true;
    },
    laneOf(one) {
      const lease = leases.get(nameOf(one.claim));
      const lane = lease?.lanes[lease.ids.indexOf(one.id)];
      return lane === undefined ? undefined : Number(lane);
    },
    settled(settles) {
      for (const one of settles) {
        const name = nameOf(one.claim);
        const lease = leases.get(name);
        if (!lease) continue;
        if (!lease.open && lease.ids.length === 1) {
          leases.delete(name);
          continue;
        }
        const open = openOf(lease);
        open.delete(one.id);
        if (open.size === 0) leases.delete(name);
      }
    },
  };
}
