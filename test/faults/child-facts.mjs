// What the processes that run out of something say about themselves, and how they count what became of their messages.
export const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function total(store, status) {
  const counts = await store.counts({ delivered: true });
  return counts.filter((row) => row.status === status).reduce((sum, row) => sum + row.count, 0);
}
