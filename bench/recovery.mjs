// How well suggestions learn: a simulated world of failure kinds with known truths. Every kind has a probability of being healed by each
// action, one action is the best by at least 0.1, and the shipped rules are right about it in a given share of kinds only. Reports, after 5,
// 20 and 100 outcomes per kind: top-1 accuracy, expected calibration error (confidence against the true probability of what is suggested),
// regret against always retrying, and the time to heal. Also evaluations per second on one core. Everything follows from --seed.
import { actionToTry } from "../dist/recovery/confidence/explore.js";
import { counted } from "../dist/recovery/confidence/outcome-counts.js";
import { SHIPPED_ACTIONS } from "../dist/recovery/rules/actions.js";
import { DEFAULT_RULES } from "../dist/recovery/rules/defaults.js";
import { evaluate } from "../dist/recovery/rules/evaluate.js";
import { prepareRules } from "../dist/recovery/rules/rule-set.js";

const CHECKPOINTS = [5, 20, 100];
const ACTIONS = [...SHIPPED_ACTIONS.keys()];
// The program never tries the other two by itself: a wrong rollback or skip cannot be taken back.
const SAFE = new Set(["retry_exponential", "fallback_model", "circuit_breaker", "notify_ops", "manual_intervention"]);
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
const START = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;
const MARGIN = 0.1;

function optionsOf(argv) {
  const options = {
    seed: 1,
    worlds: 20,
    kinds: 50,
    topics: 10,
    share: 0.25,
    right: 0.6,
    everyHours: 6,
    tryMinutes: 15,
    json: false,
  };
  for (let i = 0; i < argv.length; i++) {
    const name = argv[i].replace(/^--/, "").replace(/-(.)/g, (_, letter) => letter.toUpperCase());
    if (!argv[i].startsWith("--") || !(name in options)) {
      console.error(
        `unknown: ${argv[i]}; known: ${Object.keys(options)
          .map((each) => `--${each}`)
          .join(" ")}`,
      );
      process.exit(2);
    }
    options[name] = name === "json" ? true : Number(argv[++i]);
    if (Number.isNaN(options[name])) {
      console.error(`${argv[i - 1]} needs a number`);
      process.exit(2);
    }
  }
  return options;
}

/** A small generator with a seed (splitmix32). */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 4_294_967_296;
  };
}

function makeKinds(random, set, { kinds, topics, right }) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  return Array.from({ length: kinds }, (_, i) => {
    const errorCode = random() < 0.75 ? pick(CODES) : pick(CODES_UNKNOWN);
    const failure = { errorCode, errorMessage: `kind ${i} failed`, topic: `world/t${Math.floor(random() * topics)}` };
    const ruled = evaluate(set, { ...failure, occurrenceCount: 1 }).recommended?.action;
    const best = ruled !== undefined && random() < right ? ruled : pick(ACTIONS.filter((action) => action !== ruled));
    const top = 0.55 + 0.42 * random();
    const truth = new Map(ACTIONS.map((action) => [action, action === best ? top : 0.02 + (top - MARGIN - 0.02) * random()]));
    return { failure, best, truth };
  });
}

/** What a store would keep: per fingerprint, topic and everywhere, each per action. */
class Ledger {
  own = new Map();
  topic = new Map();
  global = new Map();

  add(kind, topic, action, result, at) {
    for (const [map, key] of [
      [this.own, `${kind} ${action}`],
      [this.topic, `${topic} ${action}`],
      [this.global, action],
    ]) {
      map.set(key, counted(map.get(key), result, at));
    }
  }

  outcomes(kind, topic) {
    return ACTIONS.map((action) => ({
      action,
      own: this.own.get(`${kind} ${action}`),
      topic: this.topic.get(`${topic} ${action}`),
      global: this.global.get(action),
    }));
  }
}

const POLICIES = {
  "always retry": () => "retry_exponential",
  suggestion: (evaluation) => evaluation.recommended?.action ?? evaluation.ranked[0].action,
  exploring: (evaluation, kind, { share }) =>
    actionToTry(evaluation.ranked, {
      explored: kind.explored,
      tries: kind.tries,
      shareMax: share,
      isSafe: (code) => SAFE.has(code),
    }),
};

/** One world under one policy: 100 outcomes per kind, one each time round. */
function live(set, policy, seed, options) {
  const kinds = makeKinds(randomOf(seed), set, options).map((kind) => ({ ...kind, explored: 0, tries: 0, regret: 0, open: 0 }));
  const random = randomOf(seed ^ 0x5bd1e995);
  const ledger = new Ledger();
  const checks = [];
  const heals = [];
  for (let round = 1; round <= CHECKPOINTS.at(-1); round++) {
    const at = START + round * options.everyHours * HOUR;
    const ask = (kind, i) =>
      evaluate(set, { ...kind.failure, occurrenceCount: kind.tries + 1, outcomes: ledger.outcomes(i, kind.failure.topic), at });
    kinds.forEach((kind, i) => {
      const evaluation = ask(kind, i);
      const action = policy(evaluation, kind, options);
      if (action !== evaluation.ranked[0].action) kind.explored++;
      kind.tries++;
      kind.open++;
      kind.regret += kind.truth.get(kind.best) - kind.truth.get(action);
      const healed = random() < kind.truth.get(action);
      ledger.add(i, kind.failure.topic, action, healed ? "healed" : "failed", at);
      if (healed) {
        heals.push({ round, minutes: kind.open * options.tryMinutes });
        kind.open = 0;
      }
    });
    if (!CHECKPOINTS.includes(round)) continue;
    checks.push({
      outcomes: round,
      regret: mean(kinds.map(({ regret }) => regret)),
      suggestions: kinds.map((kind, i) => {
        const { recommended } = ask(kind, i);
        const truth = recommended === undefined ? undefined : kind.truth.get(recommended.action);
        return {
          right: recommended?.action === kind.best,
          risky: !SAFE.has(kind.best),
          confidence: recommended?.confidence,
          truth,
        };
      }),
    });
  }
  // What is still open counts with the time it has waited, or a policy that never heals would look quick.
  for (const { open } of kinds) if (open > 0) heals.push({ round: CHECKPOINTS.at(-1), minutes: open * options.tryMinutes });
  return { checks, heals };
}

function mean(numbers) {
  return numbers.length === 0 ? 0 : numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
}

/** Ten bins of equal width: the distance between mean confidence and mean truth, weighted by how many fall into the bin. */
function calibrationError(suggestions) {
  const given = suggestions.filter(({ confidence }) => confidence !== undefined);
  const bins = Array.from({ length: 10 }, () => []);
  for (const each of given) bins[Math.min(9, Math.floor(each.confidence * 10))].push(each);
  return bins.reduce(
    (sum, bin) =>
      sum +
      (bin.length / Math.max(1, given.length)) *
        Math.abs(mean(bin.map((each) => each.confidence)) - mean(bin.map((each) => each.truth))),
    0,
  );
}

function report(name, lives) {
  const rows = CHECKPOINTS.map((outcomes, c) => {
    const checks = lives.map(({ checks }) => checks[c]);
    const all = checks.flatMap(({ suggestions }) => suggestions);
    const share = (list) => mean(list.map(({ right }) => (right ? 1 : 0)));
    const since = c === 0 ? 0 : CHECKPOINTS[c - 1];
    const minutes = lives.flatMap(({ heals }) =>
      heals.filter(({ round }) => round > since && round <= outcomes).map((heal) => heal.minutes),
    );
    return {
      policy: name,
      outcomes,
      top1: share(all),
      top1_safe_best: share(all.filter(({ risky }) => !risky)),
      none: mean(all.map(({ confidence }) => (confidence === undefined ? 1 : 0))),
      ece: calibrationError(all),
      ece_worst_world: Math.max(...checks.map(({ suggestions }) => calibrationError(suggestions))),
      regret: mean(checks.map(({ regret }) => regret)),
      minutes_to_heal: mean(minutes),
    };
  });
  return rows;
}

function evaluationsPerSecond(set) {
  const input = {
    errorCode: "http_503",
    errorMessage: "upstream said 503",
    topic: "billing/charge",
    occurrenceCount: 7,
    outcomes: [],
    at: START,
  };
  const run = (forMs) => {
    const start = process.cpuUsage();
    for (let done = 0; ; ) {
      for (let i = 0; i < 500; i++) evaluate(set, input);
      done += 500;
      const { user, system } = process.cpuUsage(start);
      if (user + system > forMs * 1_000) return Math.round(done / ((user + system) / 1_000_000));
    }
  };
  run(300);
  return run(1_000);
}

const options = optionsOf(process.argv.slice(2));
const set = prepareRules(DEFAULT_RULES, SHIPPED_ACTIONS);
const rows = Object.entries(POLICIES).flatMap(([name, policy]) =>
  report(
    name,
    Array.from({ length: options.worlds }, (_, i) => live(set, policy, options.seed * 1_000 + i, options)),
  ),
);
const perSecond = evaluationsPerSecond(set);
if (process.argv.includes("--json")) console.log(JSON.stringify({ options, rows, evaluations_per_second: perSecond }, null, 2));
else {
  console.log(
    `${options.worlds} worlds of ${options.kinds} kinds, seed ${options.seed}; rules are right about ${options.right} of the kinds.`,
  );
  console.log(
    `"exploring": at most ${options.share} of the tries go to another safe action than the suggestion; suggestions never explore.\n`,
  );
  const columns = ["policy", "outcomes", "top1", "top1_safe_best", "none", "ece", "ece_worst_world", "regret", "minutes_to_heal"];
  console.log(columns.map((name) => name.padStart(15)).join(" "));
  const shown = (name, value) =>
    name === "policy" || name === "outcomes" ? String(value) : value.toFixed(name === "minutes_to_heal" ? 1 : 3);
  for (const row of rows) console.log(columns.map((name) => shown(name, row[name]).padStart(15)).join(" "));
  console.log(`\n${perSecond} evaluations per second of 10 rules on one core.`);
}
