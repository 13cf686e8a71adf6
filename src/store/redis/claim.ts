/**
 * CLAIM, EXTEND and RECLAIM in Redis. Lease and token are made here, by chance, so that no two claims share one (DF-4).
 */
import type { Claim, ClaimedMessage } from "../../message/message.ts";
import type { At, ClaimRequest, Store } from "../store.ts";
import type { Db } from "./db.ts";
import { claimedOf } from "./rows.ts";
import { CLAIM, CLAIM_NAMED } from "./scripts/claim.ts";
import { EXTEND } from "./scripts/extend.ts";
import { RECLAIM } from "./scripts/reclaim.ts";

type Row = readonly (string | null)[];

export function createClaims(db: Db): Pick<Store, "claim" | "extend" | "reclaim"> {
  const chance = () => Buffer.from(db.random.bytes(16)).toString("hex");
  const fixed = () => ["leased", "lanes"].map(db.keys.key);

  async function claim(request: ClaimRequest): Promise<ClaimedMessage[]> {
    db.port();
    const lanes = new Map<string, number>();
    for (const { lane, limit } of request.lanes) if (limit > 0) lanes.set(lane, (lanes.get(lane) ?? 0) + limit);
    if ((request.ids ?? [...lanes]).length === 0) return [];
    const lease = chance();
    const token = chance();
    const { owner, leaseMs, bytesMax = "" } = request;
    const usual = [owner, leaseMs, bytesMax, lease, token];
    const keys = [...fixed(), db.keys.lease(lease)];
    const rows = request.ids
      ? await db.run(CLAIM_NAMED, [...keys, ...request.ids.map(db.keys.message)], [...usual, ...request.ids], request)
      : await db.run(CLAIM, [...keys, ...[...lanes.keys()].map(db.keys.lane)], [...usual, ...[...lanes].flat()], request);
    return (rows as Row[]).map((row) => claimedOf(row, lease, token));
  }

  async function extend(claims: readonly Claim[], leaseMs: number, at?: At): Promise<("extended" | "lost")[]> {
    db.port();
    if (claims.length === 0) return [];
    const keys = [db.keys.key("leased"), ...claims.map(({ lease }) => db.keys.lease(lease))];
    const args = [leaseMs, ...claims.flatMap(({ lease, token }) => [lease, token])];
    const results = (await db.run(EXTEND, keys, args, at)) as number[];
    return results.map((held) => (held === 1 ? "extended" : "lost"));
  }

  return {
    claim,
    extend,
    async reclaim(request) {
      const args = [request.owner, request.leaseMs, request.limit, chance()];
      const rows = (await db.run(RECLAIM, [db.keys.key("leased")], args, request)) as Row[];
      return rows.map((row) => claimedOf(row, "", ""));
    },
  };
}
