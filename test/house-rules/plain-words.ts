/**
 * Words that a reader would have to learn, or that leave open who is meant: they are in no source, test, document or text for users.
 * Migrations keep theirs, because their checksum is in every database, and so does the copy of the version before.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

interface Word {
  readonly pattern: RegExp;
  readonly instead: string;
}

const NAME_IT = "a plain name for what it is";
const SAY_WHO = "who is meant: the caller, the process, a person";

export const WORDS: readonly Word[] = [
  { pattern: /\bwhoever\b/i, instead: SAY_WHO },
  { pattern: /\bsomebody\b/i, instead: SAY_WHO },
  { pattern: /\bstands? there\b/i, instead: "is given, is written" },
  { pattern: /\bthe dearer\b/i, instead: "the more it costs" },
  { pattern: /\blaments?\b/i, instead: NAME_IT },
  { pattern: /\bpurses?\b/i, instead: NAME_IT },
  { pattern: /\bvessels?\b/i, instead: NAME_IT },
  { pattern: /\bappetites?\b/i, instead: NAME_IT },
  { pattern: /\bcrowd(s|ed)?\b/i, instead: "many, batch, flood" },
  { pattern: /\boccasional\b/i, instead: NAME_IT },
  { pattern: /\b(its|their|whose|other|own|movable|people's|anybody's) hands\b/i, instead: "clock, holder, worker" },
  { pattern: /\bface\b/i, instead: NAME_IT },
  { pattern: /\bwaiting rooms?\b/i, instead: "waiting" },
  { pattern: /\baside\b/i, instead: "quarantined, left out, reserved" },
  { pattern: /\bstrange(ly)?\b/i, instead: "hostile, unknown, unusual" },
  { pattern: /\blent\b/i, instead: "given for a time, claimed" },
  { pattern: /\bfates?\b/i, instead: "ending" },
  { pattern: /\ba http\b/i, instead: "an http" },
];

const PLACES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "src", "test", "bench", "demo", "deploy", "examples"];
const TEXT = /\.([cm]?[jt]sx?|md|lua|html|css|sh|ya?ml)$/;
const NOT_OURS_TO_CHANGE = /^(src\/store\/postgres\/(usage\/)?migrations\/|test\/support\/version-before\/)/;
const ABOUT_THE_WORDS = /^test\/house-rules\/(plain-words\.|broken-tree\/)/;

/** The files that are read, from the root, with forward slashes. */
export function wordedFiles(root: string): string[] {
  const under = (path: string): string[] => {
    if (/(^|\/)(node_modules|dist)$/.test(path)) return [];
    if (!statSync(join(root, path)).isDirectory()) return [path];
    return readdirSync(join(root, path)).flatMap((name) => under(`${path}/${name}`));
  };
  return PLACES.flatMap(under).filter((path) => TEXT.test(path) && !NOT_OURS_TO_CHANGE.test(path) && !ABOUT_THE_WORDS.test(path));
}

/** Names that logs have had from the beginning stay. */
const KEPT_NAMES = /\brecovery_failure_set_aside\b/g;

/** `crowdSize` and `crowd_size` have the word, too. */
const spelledOut = (line: string): string =>
  line
    .replace(KEPT_NAMES, "")
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ");

export function learnedWords(path: string, text: string): string[] {
  return text.split("\n").flatMap((line, at) => {
    const plain = spelledOut(line);
    return WORDS.filter(({ pattern }) => pattern.test(plain)).map(
      ({ pattern, instead }) => `${path}:${at + 1} ${pattern.exec(plain)?.[0]}: say ${instead}`,
    );
  });
}

export const readText = (root: string, path: string): string => readFileSync(join(root, path), "utf8");
