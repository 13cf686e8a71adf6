/**
 * CLAIM, EXTEND and RECLAIM in Redis. Lease and token are made here, by chance, so that no two claims share one (DF-4).
 */
import type { Claim, ClaimedMessage } from "../../message/message.ts";
import type { At, ClaimRequest, From, Store } from "../store.ts";
import type { Db } from "./db.ts";
import { claimedOf } from "./rows.ts";
import { APART, CLAIM, CLAIM_NAMED, CLAIMED_WIDTH } from "./scripts/claim.ts";
import { EXTEND } from "./scripts/extend.ts";
import { RECLAIM } from "./scripts/reclaim.ts";

export function createClaims(db: Db): Pick<Store, "claim" | "extend" | "reclaim"> {
  const chance = () => Buffer.from(db.random.bytes(16)).toString("hex");
  const fixed = [db.keys.key("leased"), db.keys.key("lanes")];

  async function claim(request: ClaimRequest): Promise<ClaimedMessage[]> {
    db.port();
    const lanes = new Map<string, { readonly limit: number; readonly from: From }>();
    for (const { lane, limit, from = "oldest" } of request.lanes) {
      if (limit > 0) lanes.set(lane, { limit: (lanes.get(lane)?.limit ?? 0) + limit, from });
    }
    if ((request.ids ?? [...lanes]).length === 0) return [];
    const claim = { lease: chance(), token: chance() };
    const apart = { ...claim, lease: `${claim.lease}${APART}` };
    const { owner, leaseMs, bytesMax = "" } = request;
    const usual = [owner, leaseMs, bytesMax, claim.lease, claim.token];
    const keys = [...fixed, db.keys.lease(claim.lease)];
    const names = [...lanes.keys()];
    const wanted = [...lanes].flatMap(([lane, { limit, from }]) => [lane, limit, from]);
    const reply = (
      request.ids
        ? await db.run(
            CLAIM_NAMED,
            [...keys, ...request.ids.map(db.keys.message)],
            [...usual, request.due ? 1 : 0, ...request.ids],
            request,
          )
        : await db.run(CLAIM, [...keys, ...names.map(db.keys.lane)], [...usual, ...wanted], request)
    ) as (string | number)[];
    const claimed: ClaimedMessage[] = [];
    for (let at = 0; at < reply.length; at += CLAIMED_WIDTH) {
      const lane = reply[at + 1] as string | number;
      const one = claimedOf(reply, at, typeof lane === "number" ? (names[lane] as string) : lane, claim);
      claimed.push(one.orderingKey !== null && one.suspicion > 0 ? { ...one, claim: apart } : one);
    }
    return claimed;
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
      const args = [request.owner, request.leaseMs, request.limit, chance(), request.dryRun ? 1 : 0];
      const rows = (await db.run(RECLAIM, [db.keys.key("leased")], args, request)) as string[][];
      return rows.map((row) => {
        const [lease, token] = row.slice(CLAIMED_WIDTH) as [string, string];
        return claimedOf(row, 0, row[1] as string, { lease, token });
      });
    },
  };
}
