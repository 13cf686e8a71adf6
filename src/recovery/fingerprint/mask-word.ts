/**
 * One word of a text, masked: a run of letters, digits and joints between spaces, quotes and marks. Decides between path, url
 * part, e-mail, host, address, time and number by the joints it has, each word looked at a fixed number of times.
 */
import { isDigit, isHexDigit, isLetter } from "./characters.ts";
import { maskNumber } from "./mask-number.ts";

const set = (text: string): Set<string> => new Set(text.split(" "));
const GENERIC = set("com net org edu gov mil local internal lan arpa info biz localdomain");
const COUNTRY = set(
  "ae ar at au ba bd be bg bo br by ca ch cl cn co cr cy cz de dk do ec ee eg es eu fi fr ge gr gt hk hr hu id ie il in io ir is it jo jp ke kr kw kz lb lk lt lu lv ly ma me mk mt mx my ng ni nl no np nz om pa pe ph pk pl pt py qa ro rs ru sa se sg si sk su sv th tn to tr tv tw ua ug uk us uy uz ve vn za zw",
);
/** Endings that are also plain words or files: a host only beside a figure or a dash. */
const DOUBTFUL = set("at be by do id in io is it me no my pl py rs to us");
/** "main.go:42" is a place in a source file, "example.page:443" is a host and its port. */
const SOURCES = set(
  "java kt scala groovy py js mjs cjs ts tsx jsx go rb php rs cs fs vb c cc cpp cxx h hpp m mm swift pl pm lua sql sh ex exs erl xml json",
);
/** A dotted name that begins like this is a package or a class, whatever it ends with. */
const PACKAGE = set("com net org edu gov io java javax android sun system dev app kernel sys http https");

/** The one host that is written as a word. */
export const LOCALHOST = "localhost";

export interface Joints {
  digits: boolean;
  slashes: number;
  backslash: boolean;
  colons: number;
}

/** proxy.example.com, ns1.corp.example.de: ends in a domain, does not begin like a package. */
export function isHost(word: string): boolean {
  const last = word.lastIndexOf(".");
  const first = word.indexOf(".");
  if (last <= 0 || last === word.length - 1) return false;
  const end = word.slice(last + 1);
  const country = COUNTRY.has(end);
  if (!country && !GENERIC.has(end)) return false;
  if (country && first === last) return false;
  if (word.includes("..") || word.includes("/") || word.includes("_")) return false;
  if (country && DOUBTFUL.has(end) && !word.includes("-") && !hasDigit(word, 0, word.length)) return false;
  return !PACKAGE.has(word.slice(0, first).toLowerCase());
}

/** A dotted word before a port, if it does not name a source file. */
function isHostBeforePort(word: string): boolean {
  const last = word.lastIndexOf(".");
  return last > 0 && last < word.length - 2 && !word.includes("/") && !SOURCES.has(word.slice(last + 1));
}

function isEmail(word: string): boolean {
  const at = word.indexOf("@");
  return at > 0 && word.indexOf(".", at + 2) > 0 && word.indexOf("@", at + 1) < 0 && isLetter(word.charCodeAt(word.length - 1));
}

const HEX_WORDS = set("accede acceded beaded decade deface defaced efface effaced facade");

/** All letters, all hexadecimal, of one case: from six on, no word of a language but a few. */
export function isHexWord(word: string): boolean {
  if (word.length < 6) return false;
  for (let i = 0; i < word.length; i++) if (!isHexDigit(word.charCodeAt(i))) return false;
  const lower = word.toLowerCase();
  return (lower === word || lower.toUpperCase() === word) && !HEX_WORDS.has(lower);
}

/** Without colons: the last step. */
function simple(word: string, digits: boolean): string {
  if (word === "") return "";
  if (word.includes("@")) {
    if (isEmail(word)) return "<email>";
    const at = word.indexOf("@");
    if (digits)
      return `${simple(word.slice(0, at), hasDigit(word, 0, at))}@${simple(word.slice(at + 1), hasDigit(word, at, word.length))}`;
  }
  if (word === LOCALHOST || (word.includes(".") && isHost(word))) return "<host>";
  if (digits) return maskNumber(word);
  return isHexWord(word) ? "<hex>" : word;
}

function hasDigit(word: string, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (isDigit(word.charCodeAt(i))) return true;
  return false;
}

/** hh:mm, hh:mm:ss, with a fraction: figures and colons, two figures after each colon. */
function isTime(word: string): boolean {
  const first = word.indexOf(":");
  if (first < 1 || first > 3) return false;
  for (let i = 0; i < first; i++) if (!isDigit(word.charCodeAt(i))) return false;
  let at = first;
  let parts = 0;
  while (word[at] === ":" && parts < 2) {
    if (!isDigit(word.charCodeAt(at + 1)) || !isDigit(word.charCodeAt(at + 2))) return false;
    at += 3;
    parts++;
  }
  if (at === word.length) return true;
  if (word[at] !== "." && word[at] !== "Z" && word[at] !== "+" && word[at] !== "-") return false;
  for (at++; at < word.length; at++) if (!isDigit(word.charCodeAt(at)) && word[at] !== ":" && word[at] !== "Z") return false;
  return true;
}

/** IPv6 or a hardware address: hexadecimal groups of at most four, three colons or more, or two that touch. */
function isColonAddress(word: string, colons: number, digits: boolean): boolean {
  if (colons < 2 || (colons < 3 && !word.includes("::")) || (!digits && word !== "::" && colons !== 5)) return false;
  let group = 0;
  for (let i = 0; i < word.length; i++) {
    const code = word.charCodeAt(i);
    if (code === 58 || code === 46 || code === 37) group = 0;
    else if (!isHexDigit(code) || ++group > 4) return false;
  }
  return true;
}

function withColons(word: string, joints: Joints): string {
  if (joints.digits && isTime(word)) return "<time>";
  if (isColonAddress(word, joints.colons, joints.digits)) return "<ip>";
  if (joints.digits && word[4] === "-" && word[7] === "-" && word[13] === ":" && hasDigit(word, 0, 1)) return "<time>";
  let out = "";
  let before = "";
  let from = 0;
  while (from <= word.length) {
    let to = word.indexOf(":", from);
    if (to < 0) to = word.length;
    const source = word.slice(from, to);
    const part = to < word.length && isPort(word, to + 1) && isHostBeforePort(source) ? "<host>" : withSlashes(source, from > 0);
    // A port belongs to its host.
    if (part === "<num>" && (before.endsWith("<ip>") || before.endsWith("<host>"))) before = "";
    else {
      out += from > 0 ? `:${part}` : part;
      before = part;
    }
    from = to + 1;
  }
  return out;
}

/** Two to five figures up to the end or the next colon. */
function isPort(word: string, from: number): boolean {
  let end = from;
  while (end - from < 6 && isDigit(word.charCodeAt(end))) end++;
  return end - from >= 2 && end - from <= 5 && (end === word.length || word[end] === ":");
}

/** Whole paths are paths; "n/a", "and/or" and "HTTP/2" are words on both sides of a slash; "/10.0.0.1" is an address. */
function withSlashes(word: string, inside: boolean): string {
  const first = word.indexOf("/");
  const digits = hasDigit(word, 0, word.length);
  if (first < 0) return simple(word, digits);
  if (first === 0) {
    const rest = word.slice(1);
    if (rest === "") return word;
    if (!rest.includes("/")) {
      const one = simple(rest, digits);
      if (one === "<ip>" || one === "<host>") return `/${one}`;
    }
    return "<path>";
  }
  const second = word.indexOf("/", first + 1);
  if (digits) {
    const head = simple(word.slice(0, first), hasDigit(word, 0, first));
    if (head === "<ip>") return "<ip>";
    if (second > 0) {
      const date = maskNumber(word);
      return date === "<time>" ? date : "<path>";
    }
    const tail = simple(word.slice(first + 1), hasDigit(word, first + 1, word.length));
    return tail === "<ip>" || tail === "<host>" ? tail : `${head}/${tail}`;
  }
  if (second > 0) return "<path>";
  return inside || !word.includes(".", first) ? word : "<path>";
}

/** A word with at least one joint or digit, without its trailing punctuation. */
export function maskWord(word: string, joints: Joints): string {
  if (joints.backslash) {
    const drive = word[1] === ":" && word[2] === "\\";
    return drive || word.startsWith("\\\\") || word.indexOf("\\", word.indexOf("\\") + 1) > 0 ? "<path>" : masked(word, joints);
  }
  return masked(word, joints);
}

function masked(word: string, joints: Joints): string {
  if (joints.colons > 0) return withColons(word, joints);
  if (joints.slashes > 0) return withSlashes(word, false);
  return simple(word, joints.digits);
}
