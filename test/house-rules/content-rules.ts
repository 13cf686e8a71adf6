/**
 * Rules about what stands in a file: banned calls and words, kinds of sinks, default exports, test code, suppressions without a reason.
 * They read blanked code, so a word in a comment or a string is never mistaken for a call.
 */
import { SINK_KINDS } from "./rooms.ts";
import type { Found, Rule } from "./rules.ts";
import { lineAt, type SourceFile } from "./source.ts";

interface Ban {
  readonly what: string;
  readonly pattern: RegExp;
  readonly instead: string;
}

/** A name of the global scope: not a member of something else, unless that is `globalThis`. */
const global = (name: string): RegExp => new RegExp(`(?<![\\w$.])(?:globalThis\\s*\\.\\s*)?${name}\\b`, "g");

const CLOCK = "platform/clock.ts";
const TIMER = "Clock.after or sleep of platform/clock.ts";
const RANDOM = "platform/random.ts";

export const BANS: readonly Ban[] = [
  { what: "Date.now", pattern: global("Date\\s*\\.\\s*now"), instead: CLOCK },
  {
    what: "new Date()",
    pattern: /\bnew\s+Date\b(?!\s*\(\s*[^\s)])(?!\s*\.)|(?<![\w$.]|\bnew\s+)Date\s*\(\s*\)/g,
    instead: CLOCK,
  },
  { what: "performance.now", pattern: global("performance\\s*\\.\\s*now"), instead: CLOCK },
  { what: "process.hrtime", pattern: global("process\\s*\\.\\s*hrtime"), instead: CLOCK },
  { what: "setTimeout", pattern: global("setTimeout"), instead: TIMER },
  { what: "setInterval", pattern: global("setInterval"), instead: "startLoop of platform/loop.ts" },
  { what: "setImmediate", pattern: global("setImmediate"), instead: TIMER },
  { what: "AbortSignal.timeout", pattern: global("AbortSignal\\s*\\.\\s*timeout"), instead: TIMER },
  { what: "Math.random", pattern: global("Math\\s*\\.\\s*random"), instead: RANDOM },
  { what: "randomBytes", pattern: /\brandomBytes\b/g, instead: RANDOM },
  { what: "randomUUID", pattern: /\brandomUUID\b/g, instead: "platform/ids.ts" },
  { what: "getRandomValues", pattern: /\bgetRandomValues\b/g, instead: RANDOM },
  { what: "console", pattern: global("console"), instead: "an event of observe/, or a writer that is passed in" },
  { what: "process.exit", pattern: global("process\\s*\\.\\s*exit"), instead: "a thrown error or a returned code; cli/ exits" },
  { what: "process.env", pattern: global("process\\s*\\.\\s*env"), instead: "an option that the command line fills in" },
];

/** The same calls by another door. */
const BANNED_MODULES: Readonly<Record<string, string>> = {
  timers: "node:timers",
  "timers/promises": "node:timers",
  process: "process.env",
};

const offsets = (code: string, pattern: RegExp): number[] => [...code.matchAll(pattern)].map((match) => match.index);

export const bannedCalls: Rule = (tree) =>
  tree.flatMap(({ path, code, imports }) => [
    ...BANS.flatMap(({ what, pattern, instead }) =>
      offsets(code, pattern).map((at) => ({ file: path, line: lineAt(code, at), what, text: `${what}: use ${instead}` })),
    ),
    ...imports.flatMap(({ spec, line }): Found[] => {
      const what = BANNED_MODULES[spec.replace(/^node:/, "")];
      return what ? [{ file: path, line, what, text: `${spec}: the same call by another door` }] : [];
    }),
  ]);

/** Words of other vocabularies (docs/glossary.md says which word stands for the concept here). */
const BANNED_WORDS: Readonly<Record<string, string>> = {
  job: "message",
  task: "message",
  queue: "topic, lane or ready",
  ack: "settle",
  nack: "settle",
  dlq: "dead letter",
};

/** `leaseJobIds` → lease, job, ids; `DLQ_SIZE` → dlq, size. */
function words(identifier: string): string[] {
  return identifier
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.toLowerCase());
}

export const bannedWords: Rule = (tree) =>
  tree.flatMap(({ path, code }) => {
    const seen = new Set<string>();
    return [...code.matchAll(/[A-Za-z_$][\w$]*/g)].flatMap(({ 0: identifier, index }): Found[] => {
      const word = words(identifier)
        .map((part) => part.replace(/s$/, ""))
        .find((part) => Object.hasOwn(BANNED_WORDS, part));
      if (word === undefined || seen.has(identifier)) return [];
      seen.add(identifier);
      const what = identifier === "queueMicrotask" ? identifier : word;
      return [{ file: path, line: lineAt(code, index), what, text: `${identifier}: the word here is ${BANNED_WORDS[word]}` }];
    });
  });

/** `function` is left out: it is also what `typeof` says. */
const KIND_TEXT = new RegExp(`(["'\`])(?:${SINK_KINDS.filter((kind) => kind !== "function").join("|")})\\1`, "g");

/**
 * Only src/sink knows which kinds of sinks there are: another file may use one, but it neither tells kinds apart nor names two of them, which
 * would be a second list.
 */
export const sinkKinds: Rule = (tree) =>
  tree
    .filter(({ path }) => !path.startsWith("src/sink/"))
    .flatMap(({ path, text, code }): Found[] => {
      const named = [...text.matchAll(KIND_TEXT)].filter(({ index, 0: literal }) => code[index] === literal[0]);
      return named.flatMap(({ index, 0: literal }): Found[] => {
        const compared =
          /(?:[!=]==?|\bcase)\s*$/.test(code.slice(0, index)) || /^\s*[!=]==?/.test(code.slice(index + literal.length));
        const second = literal !== named[0]?.[0];
        if (!compared && !second) return [];
        return [
          { file: path, line: lineAt(code, index), text: `${literal}: kinds of sinks are told apart in src/sink/kinds.ts only` },
        ];
      });
    });

export const defaultExports: Rule = (tree) =>
  tree.flatMap(({ path, code }) =>
    offsets(code, /\bexport\s+default\b|\bexport\s*\{[^}]*\bas\s+default\b/g).map((at) => ({
      file: path,
      line: lineAt(code, at),
      text: "no default export: a thing has one name everywhere",
    })),
  );

const READS_BODY = /\bJSON\s*\.\s*parse\b|\.\s*(?:json|formData|arrayBuffer|blob)\s*\(\s*\)|\.\s*(?:bytes|getReader)\s*\(/g;

/** A handler gets what its route has read (`readRequest`) or a text that a scanner cuts: JSON that it parses itself has passed no schema. */
export const parsedOnce: Rule = (tree) =>
  tree
    .filter(({ path }) => path.startsWith("src/server/handlers/"))
    .flatMap(({ path, code }) =>
      offsets(code, READS_BODY).map((at) => ({
        file: path,
        line: lineAt(code, at),
        text: "a handler reads no JSON of a request: say in src/contract what the address takes",
      })),
    );

const TEST_FILE = /(\.(test|spec)\.[cm]?[jt]sx?$)|(^|\/)(__tests__|__mocks__|tests?)\//;
const TEST_MODULE = /^(vitest|fast-check|node:test|@jest\/.*|sinon)(\/|$)/;
const TEST_NAME = /\b(__test\w*|\w*[fF]orTests?|\w*TestOnly|testOnly\w*|NODE_ENV|VITEST)\b/g;

/** Tests see inside through events, an injected clock and wrappers around the seams; the product carries nothing for them. */
export const testCode: Rule = (tree) =>
  tree
    .filter(({ path }) => !path.startsWith("src/testing/"))
    .flatMap(({ path, code, imports }: SourceFile): Found[] => [
      ...(TEST_FILE.test(path) ? [{ file: path, line: 1, text: "tests live under test/" }] : []),
      ...imports
        .filter(({ spec }) => TEST_MODULE.test(spec))
        .map(({ spec, line }) => ({ file: path, line, text: `${spec} in the product` })),
      ...[...code.matchAll(TEST_NAME)].map(({ 0: name, index }) => ({
        file: path,
        line: lineAt(code, index),
        text: `${name}: a switch for tests in the product`,
      })),
    ]);

const SUPPRESSION = /(@ts-(?:ignore|expect-error|nocheck)|biome-ignore(?:-\w+)?|eslint-disable(?:-[\w-]+)?)([^\n]*)/g;

/** A reason is at least two words that are no rule's name and no placeholder. */
function hasReason(kind: string, rest: string): boolean {
  const after = kind.startsWith("@ts-") ? rest : rest.slice(rest.indexOf(":") + 1 || rest.length);
  const reason = after.replace(/\*\/\s*$/, "").replace(/<explanation>/g, "");
  return (reason.match(/[A-Za-z]{2,}/g)?.length ?? 0) >= 2;
}

export const suppressions: Rule = (tree) =>
  tree.flatMap(({ path, comments }) =>
    comments.flatMap((comment) =>
      [...comment.text.matchAll(SUPPRESSION)]
        .filter(([, kind, rest]) => !hasReason(kind as string, rest as string))
        .map(({ 1: kind, index }) => ({
          file: path,
          line: comment.line + comment.text.slice(0, index).split("\n").length - 1,
          text: `${kind} without a reason: say why it is right here`,
        })),
    ),
  );
