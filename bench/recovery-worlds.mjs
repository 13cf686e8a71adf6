// Simulated worlds for bench/recovery.mjs. In the plain world every kind of failure has its own truth and an execution is one message. In
// the world of families kinds that share a cause have similar truths, messages of one execution heal or fail together, receivers are down
// for a while, and people repair what does not heal by itself and then send it again. Everything follows from the seed.
import { SHIPPED_ACTIONS } from "../dist/recovery/actions/shipped.js";

export const ACTIONS = [...SHIPPED_ACTIONS];
const CODES = [
  "TIMEOUT",
  "http_429",
  "http_503",
  "http_500",
  "BUDGET_EXCEEDED",
  "UNAUTHORIZED",
  "ECONNREFUSED",
  "connection_reset",
];
const CODES_UNKNOWN = ["CARD_DECLINED", "handler_error", "SCHEMA_MISMATCH", "STATE_CONFLICT"];
/** Heals by no retry until a person has repaired it. */
const NEEDS_REPAIR = "UNAUTHORIZED";
const MARGIN = 0.1;
const CANARY = 5;

/** A small generator with a seed (splitmix32). */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 4_294_967_296;
  };
}

const picker = (random) => (list) => list[Math.floor(random() * list.length)];

function truthOf(random, pick, ruled, right) {
  const best = ruled !== undefined && random() < right ? ruled : pick(ACTIONS.filter((action) => action !== ruled));
  const top = 0.55 + 0.42 * random();
  return new Map(ACTIONS.map((action) => [action, action === best ? top : 0.02 + (top - MARGIN - 0.02) * random()]));
}

const bestOf = (truth) => ACTIONS.reduce((a, b) => (truth.get(b) > truth.get(a) ? b : a));

/** `ruledFor`: the action that the rules suggest for a code without a history. */
export function makeKinds(random, ruledFor, { kinds, topics, right, rightFamilies, alike, families }) {
  const pick = picker(random);
  const truths = new Map();
  if (families)
    for (const code of [...CODES, ...CODES_UNKNOWN]) truths.set(code, truthOf(random, pick, ruledFor(code), rightFamilies));
  return Array.from({ length: kinds }, (_, i) => {
    const errorCode = random() < 0.75 ? pick(CODES) : pick(CODES_UNKNOWN);
    const topic = Math.floor(random() * topics);
    const failure = { errorCode, errorMessage: `kind ${i} failed`, topic: `world/t${topic}` };
    const family = truths.get(errorCode);
    const truth =
      family === undefined
        ? truthOf(random, pick, ruledFor(errorCode), right)
        : new Map(ACTIONS.map((action) => [action, beta(random, family.get(action) * alike, (1 - family.get(action)) * alike)]));
    return { failure, topic, cause: errorCode, best: bestOf(truth), truth };
  });
}

/** When receivers are down, by topic and round; and when a person has repaired what does not heal alone. */
export function makeTimes(random, { topics, rounds, families, outageShare, outageRounds, repairEvery }) {
  const down = Array.from({ length: topics }, () => new Set());
  if (!families) return { isDown: () => false, upShare: () => 1, isRepaired: () => false };
  for (const rounds_ of down) {
    for (let round = 1; round <= rounds; round++) {
      if (random() >= outageShare) continue;
      const until = round + Math.floor(random() * outageRounds);
      for (; round <= until; round++) rounds_.add(round);
    }
  }
  return {
    isDown: (topic, round) => down[topic].has(round),
    upShare: (topic) => 1 - down[topic].size / rounds,
    isRepaired: (kind, round) => kind.failure.errorCode === NEEDS_REPAIR && round % repairEvery === 0,
  };
}

/** What became of the messages of one execution: a canary first; the rest only if it healed. */
export function execution(random, truth, { families, together, messagesMax }) {
  if (!families) return random() < truth ? { healed: 1, failed: 0 } : { healed: 0, failed: 1 };
  const messages = Math.max(1, Math.round(Math.exp(random() * Math.log(messagesMax))));
  const spread = (1 - together) / together;
  const share = beta(random, truth * spread, (1 - truth) * spread);
  const tried = (n) => Array.from({ length: n }, () => random() < share).filter(Boolean).length;
  const canary = Math.min(CANARY, messages);
  const first = tried(canary);
  if (first < canary - first) return { healed: first, failed: canary - first };
  const healed = first + tried(messages - canary);
  return { healed, failed: messages - healed };
}

function normal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function gamma(random, shape) {
  if (shape < 1) return gamma(random, shape + 1) * (1 - random()) ** (1 / shape);
  const d = shape - 1 / 3;
  for (;;) {
    const x = normal(random);
    const v = (1 + x / Math.sqrt(9 * d)) ** 3;
    if (v > 0 && Math.log(1 - random()) < x ** 2 / 2 + d - d * v + d * Math.log(v)) return d * v;
  }
}

function beta(random, a, b) {
  const [x, y] = [gamma(random, a), gamma(random, b)];
  return x / (x + y);
}
