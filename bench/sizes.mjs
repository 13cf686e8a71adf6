// How much each question asks: the full run that the results are made of, and a quick one that only shows that all works.

export const full = {
  rounds: 5,
  calibrationMs: 500,
  patienceMs: 240_000,
  warmUpMs: 1500,
  enqueueMs: 2000,
  acceptMs: 3000,
  acceptDelivered: 10_000,
  transactionMs: 2500,
  drainCount: 100_000,
  latency: { perSecond: 50, count: 500, skipped: 5, settleInMs: 2000 },
  depth: { shallow: 60_000, deep: 1_000_000 },
  longTransaction: { count: 200_000, edge: 20_000 },
  history: { delivered: 1_000_000, count: 100_000 },
  http: { count: 20_000, concurrency: 50, paced: { perSecond: 50, count: 400, skipped: 5, settleInMs: 1500 } },
  /** One call after the other; 1 % of the calls is what a p99 rests on. */
  settlement: { backlog: 1_000, warmUp: 300, count: 2_000 },
  /** Depth and the edges of the long transaction are whole windows. */
  windowSize: 5_000,
};

export const quick = {
  rounds: 1,
  calibrationMs: 100,
  patienceMs: 15_000,
  warmUpMs: 100,
  enqueueMs: 300,
  acceptMs: 300,
  acceptDelivered: 500,
  transactionMs: 300,
  drainCount: 4_000,
  latency: { perSecond: 50, count: 50, skipped: 5, settleInMs: 1500 },
  depth: { shallow: 3_000, deep: 20_000 },
  longTransaction: { count: 10_000, edge: 2_000 },
  history: { delivered: 10_000, count: 3_000 },
  http: { count: 1_000, concurrency: 50, paced: { perSecond: 50, count: 50, skipped: 5, settleInMs: 1000 } },
  settlement: { backlog: 100, warmUp: 20, count: 100 },
  windowSize: 1_000,
};
