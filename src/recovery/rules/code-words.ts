/** Error codes as words, so that every spelling is one code: RATE_LIMIT, rate-limited and 429 agree, 500 is not in 15000. */
import { GENERIC_CODES, KNOWN_CODES, type KnownCode, NOISE_WORDS, STATUS_CODES, STATUS_WORDS } from "./known-codes.ts";
import { INPUT_LIMITS } from "./rule.ts";

export type Code = ReturnType<typeof readCode>;

interface Phrase {
  readonly words: readonly string[];
  readonly known: KnownCode;
}

type Phrases = ReadonlyMap<string, readonly Phrase[]>;

/** By first word, longest first: "GATEWAY TIMEOUT" is taken before "TIMEOUT" is looked at. */
function byFirstWord(list: "inCodes" | "inText"): Phrases {
  const phrases = KNOWN_CODES.flatMap((known) => known[list].map((text): Phrase => ({ words: text.split(" "), known })));
  const table = new Map<string, Phrase[]>();
  for (const phrase of phrases.sort((a, b) => b.words.length - a.words.length)) {
    const first = phrase.words[0] as string;
    table.set(first, [...(table.get(first) ?? []), phrase]);
  }
  return table;
}

const IN_CODES = byFirstWord("inCodes");
const IN_TEXT = byFirstWord("inText");

/** Letters and digits are words; a capital after a small letter begins one, and so does the status in HTTP503. */
export function wordsOf(text: string, charsMax: number = INPUT_LIMITS.codeChars): string[] {
  return text
    .slice(0, charsMax)
    .replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
    .replace(/([\p{Lu}\d])(\p{Lu}\p{Ll})/gu, "$1 $2")
    .toUpperCase()
    .split(/[^\p{L}\p{N}]+/u)
    .flatMap((word) => (/^HTTP\d{3}$/.test(word) ? ["HTTP", word.slice(4)] : [word]))
    .filter((word) => word !== "");
}

const statusOf = (word = ""): number => (/^[1-5]\d\d$/.test(word) ? Number(word) : 0);
const withoutNoise = (words: readonly string[]): string[] => words.filter((word) => !NOISE_WORDS.has(word));

/** Is the number at `at` a status? In a code it may stand alone; in a text only "HTTP 503" and "status code 503" are sure. */
function isStatusAt(words: readonly string[], at: number, inText: boolean): boolean {
  if (statusOf(words[at]) === 0) return false;
  if (!inText && words.length === 1) return true;
  const word = words[words[at - 1] === "CODE" ? at - 2 : at - 1];
  return word !== undefined && (inText ? word === "HTTP" || word === "STATUS" : STATUS_WORDS.has(word));
}

/** The known codes that stand in the words, and their classes. */
function find(words: readonly string[], phrases: Phrases) {
  const codes = new Set<string>();
  const classes = new Set<string>();
  const add = (known: KnownCode): void => {
    codes.add(known.code);
    for (const each of known.classes) classes.add(each);
  };
  for (let at = 0; at < words.length; ) {
    if (isStatusAt(words, at, phrases === IN_TEXT)) {
      const status = statusOf(words[at]);
      const also = STATUS_CODES.get(status);
      add({ code: `HTTP_${status}`, classes: status < 400 ? [] : [status < 500 ? "HTTP_4XX" : "HTTP_5XX"] });
      if (also !== undefined) add(also);
    }
    const phrase = phrases.get(words[at] as string)?.find((each) => each.words.every((word, i) => word === words[at + i]));
    if (phrase !== undefined) add(phrase.known);
    at += phrase?.words.length ?? 1;
  }
  return { codes, classes };
}

/** The code of a failure. The message is read only when the code is empty or says nothing but that something failed. */
export function readCode(code: string, message = "") {
  const words = wordsOf(code);
  let found = find(words, IN_CODES);
  let from: "code" | "message" = "code";
  if (found.codes.size === 0 && message !== "" && GENERIC_CODES.has(withoutNoise(words).join(" "))) {
    const read = find(wordsOf(message, INPUT_LIMITS.messageChars), IN_TEXT);
    if (read.codes.size > 0) [found, from] = [read, "message"];
  }
  if (found.classes.size === 0) found.classes.add("UNKNOWN");
  return { words, name: words.join("_"), ...found, from };
}

/**
 * What a rule means by a code: the known code when the value is one of its spellings, otherwise its own name. A status with another
 * name is that: 429 in a rule is RATE_LIMIT.
 */
export function codeMeant(value: string): string {
  const words = wordsOf(value);
  const plain = withoutNoise(words);
  const status = statusOf(plain.at(-1));
  if (status > 0 && plain.slice(0, -1).every((word) => STATUS_WORDS.has(word) || word === "CODE")) {
    return STATUS_CODES.get(status)?.code ?? `HTTP_${status}`;
  }
  // "429 Too Many Requests" says the same thing twice.
  for (const each of [words, plain, plain.filter((word) => statusOf(word) === 0)]) {
    const phrase = IN_CODES.get(each[0] ?? "")?.find((one) => one.words.join(" ") === each.join(" "));
    if (phrase !== undefined) return phrase.known.code;
  }
  return words.join("_");
}

/** The code of a failure's group: the many spellings of "too many requests" are one, any other code stays as it was said. */
export function groupedCode(code: string): string {
  return /429|rate|many/i.test(code) && codeMeant(code) === "RATE_LIMIT" ? "http_429" : code;
}

/** A code, a class by its name, or the whole code word for word. UNKNOWN is meant as a code here, not as "none of the classes". */
export function isCode(code: Code, meant: string): boolean {
  return code.codes.has(meant) || code.name === meant || (meant !== "UNKNOWN" && code.classes.has(meant));
}

/** The first words of the code are these. */
export function beginsWith(code: Code, words: readonly string[]): boolean {
  return words.length <= code.words.length && words.every((word, i) => word === code.words[i]);
}
