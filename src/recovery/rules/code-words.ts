/**
 * Error codes as words, so that every spelling of a code is one code: RATE_LIMIT, rate-limited, RateLimitExceeded, 429 and
 * http_429 agree, AUTH is not in AUTHOR and 500 is not in 15000. Linear in the text, which is cut to a limit first.
 */
import { GENERIC_CODES, KNOWN_CODES, type KnownCode, NOISE_WORDS, STATUS_CODES, STATUS_WORDS } from "./known-codes.ts";
import { INPUT_LIMITS } from "./rule.ts";

export interface Code {
  /** Words in capitals. */
  readonly words: readonly string[];
  /** The code in its one spelling: its words joined by "_". */
  readonly name: string;
  /** Known codes it contains, and their classes; UNKNOWN when there is none. */
  readonly codes: ReadonlySet<string>;
  readonly classes: ReadonlySet<string>;
  /** Where the known codes stand: in the code, or in the message because the code said nothing. */
  readonly from: "code" | "message";
}

interface Phrase {
  readonly words: readonly string[];
  readonly known: KnownCode;
}

/** By first word, longest first: "GATEWAY TIMEOUT" is taken before "TIMEOUT" is looked at. */
function phraseTable(of: (known: KnownCode) => readonly string[]): ReadonlyMap<string, readonly Phrase[]> {
  const table = new Map<string, Phrase[]>();
  for (const known of KNOWN_CODES) {
    for (const text of of(known)) {
      const words = text.split(" ");
      const list = table.get(words[0] as string) ?? [];
      list.push({ words, known });
      table.set(words[0] as string, list);
    }
  }
  for (const list of table.values()) list.sort((a, b) => b.words.length - a.words.length);
  return table;
}

const IN_CODES = phraseTable(({ phrases }) => phrases);
const IN_TEXT = phraseTable(({ inText = [] }) => inText);

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

function statusOf(word: string): number {
  return /^[1-5]\d\d$/.test(word) ? Number(word) : 0;
}

interface Finding {
  readonly codes: Set<string>;
  readonly classes: Set<string>;
}

function addStatus(status: number, { codes, classes }: Finding): void {
  codes.add(`HTTP_${status}`);
  if (status >= 400) classes.add(status < 500 ? "HTTP_4XX" : "HTTP_5XX");
  const also = STATUS_CODES.get(status);
  if (also === undefined) return;
  codes.add(also.code);
  for (const each of also.classes) classes.add(each);
}

/** Is the number at `at` a status? In a code it may stand alone; in a text only "HTTP 503" and "status code 503" are sure. */
function isStatusAt(words: readonly string[], at: number, inText: boolean): boolean {
  if (statusOf(words[at] as string) === 0) return false;
  if (!inText && words.length === 1) return true;
  let before = at - 1;
  if (words[before] === "CODE") before--;
  const word = words[before];
  return word !== undefined && (inText ? word === "HTTP" || word === "STATUS" : STATUS_WORDS.has(word));
}

function find(words: readonly string[], table: ReadonlyMap<string, readonly Phrase[]>, inText: boolean): Finding {
  const found: Finding = { codes: new Set(), classes: new Set() };
  for (let at = 0; at < words.length; ) {
    if (isStatusAt(words, at, inText)) addStatus(statusOf(words[at] as string), found);
    const phrase = table.get(words[at] as string)?.find((each) => each.words.every((word, i) => word === words[at + i]));
    if (phrase === undefined) {
      at++;
      continue;
    }
    found.codes.add(phrase.known.code);
    for (const each of phrase.known.classes) found.classes.add(each);
    at += phrase.words.length;
  }
  return found;
}

function withoutNoise(words: readonly string[]): string[] {
  return words.filter((word) => !NOISE_WORDS.has(word));
}

/** The code of a failure. The message is read only when the code is empty or says nothing but that something failed. */
export function readCode(code: string, message = ""): Code {
  const words = wordsOf(code);
  let found = find(words, IN_CODES, false);
  let from: Code["from"] = "code";
  if (found.codes.size === 0 && message !== "" && GENERIC_CODES.has(withoutNoise(words).join(" "))) {
    const read = find(wordsOf(message, INPUT_LIMITS.messageChars), IN_TEXT, true);
    if (read.codes.size > 0) [found, from] = [read, "message"];
  }
  if (found.classes.size === 0) found.classes.add("UNKNOWN");
  return { words, name: words.join("_"), codes: found.codes, classes: found.classes, from };
}

/**
 * What a rule means by a code: the known code when the value is one of its spellings, otherwise its own name. A status with another
 * name is that: 429 in a rule is RATE_LIMIT.
 */
export function codeMeant(value: string): string {
  const words = wordsOf(value);
  const plain = withoutNoise(words);
  const status = statusOf(plain.at(-1) ?? "");
  const before = plain.slice(0, -1);
  if (status > 0 && before.every((word) => STATUS_WORDS.has(word) || word === "CODE")) {
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
