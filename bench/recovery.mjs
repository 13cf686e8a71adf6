// How well suggestions learn: simulated worlds of failure kinds with known truths (bench/recovery-worlds.mjs), one plain and one with families,
// correlated batches, outages and repairs. Every kind has a probability of being healed by each action, and the shipped rules are right about
// the best one in a given share only. Reports, after 5, 20 and 100 executions per kind: top-1 accuracy, expected calibration error
// (confidence against the true probability of what is suggested), how many of the confident suggestions are wrong, regret, and the time to heal. Also evaluations per second
// on one core. Everything follows from --seed. What may be explored is the catalogue's to say.
import { ACTIONS as CATALOGUE, SHIPPED_ACTIONS } from "../dist/recovery/actions/shipped.js";
import { actionToTry } from "../dist/recovery/confidence/explore.js";
import { evidenceOfKinds, observed } from "../dist/recovery/confidence/levels.js";
import { repairBefore } from "../dist/recovery/confidence/observation.js";
import { DEFAULT_RULES } from "../dist/recovery/rules/defaults.js";
import { evaluate } from "../dist/recovery/rules/evaluate.js";
import { prepareRules } from "../dist/recovery/rules/rule-set.js";
import { execution, makeKinds, makeTimes, randomOf } from "./recovery-worlds.mjs";

const CHECKPOINTS = [5, 20, 100];
/** What a program may try by itself. */
const SAFE = new Set(
  CATALOGUE.filter(({ risk, isAutomated }) => risk === "safe" && isAutomated).map(({ actionCode }) => actionCode),
);
const START = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;

function optionsOf(argv) {
  const options = {
    seed: 1,
    worlds: 20,
    kinds: 50,
    topics: 10,
    share: 0.1,
    right: 0.6,
    rightFamilies: 0.45,
    alike: 15,
    together: 0.8,
    messagesMax: 300,
    outageShare: 0.02,
    outageRounds: 4,
    repairEvery: 10,
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

/** What a store would keep, for each kind and action. */
class Ledger {
  kinds = new Map();

  add(observation) {
    if (repairBefore(observation) !== null) return;
    const name = `${observation.groupId} ${observation.action}`;
    this.kinds.set(name, observed(this.kinds.get(name), observation));
  }

  outcomes(groupId, cause, at) {
    return evidenceOfKinds(this.kinds.values(), { groupId, cause }, at);
  }
}

const suggestionOf = ({ recommended, ranked }) => recommended?.action ?? ranked[0].action;

const POLICIES = {
  "always retry": () => "retry_exponential",
  suggestion: suggestionOf,
  exploring: (evaluation, kind, { share }, random) =>
    kind.explored + 1 > share * (kind.tries + 1)
      ? suggestionOf(evaluation)
      : actionToTry(evaluation.ranked, suggestionOf(evaluation), (action) => SAFE.has(action), random),
};

/** One world under one policy: 100 executions per kind, one each time round. */
function live(set, policy, seed, options) {
  const ruledFor = (errorCode) =>
    evaluate(set, { errorCode, errorMessage: "kind failed", occurrenceCount: 1 }).recommended?.action;
  const kinds = makeKinds(randomOf(seed), ruledFor, options).map((kind) => ({
    ...kind,
    explored: 0,
    tries: 0,
    regret: 0,
    open: 0,
  }));
  const random = randomOf(seed ^ 0x5bd1e995);
  const chance = randomOf(seed ^ 0x1234567);
  const rounds = CHECKPOINTS.at(-1);
  const times = makeTimes(randomOf(seed ^ 0x2545f491), { ...options, rounds });
  const ledger = new Ledger();
  const checks = [];
  const heals = [];
  for (let round = 1; round <= rounds; round++) {
    const at = START + round * options.everyHours * HOUR;
    const ask = (kind, i) =>
      evaluate(set, { ...kind.failure, occurrenceCount: kind.tries + 1, outcomes: ledger.outcomes(i, kind.cause, at), at });
    const learn = (kind, i, action, messages, more) =>
      ledger.add({
        groupId: i,
        cause: kind.cause,
        action,
        ...messages,
        byPerson: false,
        repair: null,
        breakerOpen: false,
        ...more,
        at,
      });
    kinds.forEach((kind, i) => {
      // What a person repairs and sends again heals, whatever the action is worth alone.
      if (times.isRepaired(kind, round))
        learn(
          kind,
          i,
          "retry_exponential",
          { healed: 100, failed: 0 },
          { byPerson: true, repair: "renewed the key", deliveredSince: true },
        );
      const evaluation = ask(kind, i);
      const action = policy(evaluation, kind, options, chance);
      if (action !== suggestionOf(evaluation)) kind.explored++;
      kind.tries++;
      kind.open++;
      kind.regret += kind.truth.get(kind.best) - kind.truth.get(action);
      const down = times.isDown(kind.topic, round);
      const messages = execution(random, kind.truth.get(action), options);
      learn(kind, i, action, down ? { healed: 0, failed: Math.min(5, messages.healed + messages.failed) } : messages, {
        deliveredSince: !down,
      });
      if (!down && messages.healed > messages.failed) {
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
        const truth = recommended === undefined ? undefined : kind.truth.get(recommended.action) * times.upShare(kind.topic);
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
  for (const { open } of kinds) if (open > 0) heals.push({ round: rounds, minutes: open * options.tryMinutes });
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
      // Of those suggested with 0.8 or more: how many are true below 0.6.
      overconfident: mean(all.filter(({ confidence }) => confidence >= 0.8).map(({ truth }) => (truth < 0.6 ? 1 : 0))),
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
const inWorld = (families) =>
  Object.entries(POLICIES).flatMap(([name, policy]) =>
    report(
      name,
      Array.from({ length: options.worlds }, (_, i) => live(set, policy, options.seed * 1_000 + i, { ...options, families })),
    ),
  );
const worlds = { plain: inWorld(false), families: inWorld(true) };
const perSecond = evaluationsPerSecond(set);
if (process.argv.includes("--json"))
  console.log(JSON.stringify({ options, ...worlds, evaluations_per_second: perSecond }, null, 2));
else {
  console.log(`${options.worlds} worlds of ${options.kinds} kinds, seed ${options.seed}.`);
  console.log(
    `"exploring": at most ${options.share} of the tries go to another action than the suggestion, of ${[...SAFE].join(", ")}; suggestions never explore.`,
  );
  const columns = [
    "policy",
    "outcomes",
    "top1",
    "top1_safe_best",
    "none",
    "ece",
    "overconfident",
    "ece_worst_world",
    "regret",
    "minutes_to_heal",
  ];
  const shown = (name, value) =>
    name === "policy" || name === "outcomes" ? String(value) : value.toFixed(name === "minutes_to_heal" ? 1 : 3);
  for (const [world, rows] of Object.entries(worlds)) {
    const right = world === "plain" ? options.right : options.rightFamilies;
    console.log(`\n${world}: rules are right about ${right} of ${world === "plain" ? "the kinds" : "the families"}.`);
    console.log(columns.map((name) => name.padStart(15)).join(" "));
    for (const row of rows) console.log(columns.map((name) => shown(name, row[name]).padStart(15)).join(" "));
  }
  console.log(`\n${perSecond} evaluations per second of 10 rules on one core.`);
}
