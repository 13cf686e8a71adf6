// One process of the two-process contention test: claims, sometimes retries, sometimes abandons, and settles, until nothing is left.
const { dist, url, prefix, seed, owner } = JSON.parse(process.argv[2]);
const { createRedisStore } = await import(`${dist}/store/redis/index.js`);

let state = seed;
const chance = () => {
  state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
  return state / 2_147_483_648;
};
const store = createRedisStore({ redis: url, prefix });
await store.open();
const settled = [];
const effects = [];
let empty = 0;
while (empty < 40) {
  const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 1 + Math.floor(chance() * 20) }));
  // Both leases are shorter than the time after which a process finds nothing and ends: what is abandoned comes back to another.
  const taken = await store.reclaim({ owner, leaseMs: 400, limit: 5 });
  const claimed = [...taken, ...(await store.claim({ owner, leaseMs: 400, lanes }))];
  if (claimed.length === 0) {
    empty++;
    await new Promise((resolve) => setTimeout(resolve, 25));
    continue;
  }
  empty = 0;
  // One batch in ten is abandoned, as a crash would; its lease runs out and another takes it over.
  if (chance() < 0.1) continue;
  const settles = claimed.map(({ id, claim, attempt }) => ({
    id,
    claim,
    attempt,
    durationMs: 1,
    settlement:
      chance() < 0.2
        ? { kind: "retry", delayMs: 5, counted: true, suspicion: 0, outcome: "retry", code: "x", error: "y" }
        : { kind: "delivered", outcome: "delivered" },
  }));
  if (chance() < 0.05) await new Promise((resolve) => setTimeout(resolve, 600));
  const results = await store.settle(settles);
  for (const [i, one] of settles.entries()) {
    if (one.settlement.kind !== "delivered") continue;
    effects.push(one.id);
    if (results[i] === "settled") settled.push(one.id);
  }
}
await store.close();
console.log(JSON.stringify({ type: "done", settled, effects: effects.length }));
process.exit(0);
