/** One word of a text, masked: what it is follows from the joints it has. Each word is looked at a fixed number of times. */
import { classOf, DIGIT, wordSet } from "./characters.ts";
import { maskNumber } from "./mask-number.ts";

const GENERIC = wordSet("com net org edu gov mil local internal lan arpa info biz localdomain");
const COUNTRY = wordSet(
  "ae ar at au ba bd be bg bo br by ca ch cl cn co cr cy cz de dk do ec ee eg es eu fi fr ge gr gt hk hr hu id ie il in io ir is it jo jp ke kr kw kz lb lk lt lu lv ly ma me mk mt mx my ng ni nl no np nz om pa pe ph pk pl pt py qa ro rs ru sa se sg si sk su sv th tn to tr tv tw ua ug uk us uy uz ve vn za zw",
);
/** Endings that are also plain words or files: a host only beside a figure or a dash. */
const DOUBTFUL = wordSet("at be by do id in io is it me no my pl py rs to us");
/** "main.go:42" is a place in a source file, "example.page:443" is a host and its port. */
const SOURCES = wordSet(
  "java kt scala groovy py js mjs cjs ts tsx jsx go rb php rs cs fs vb c cc cpp cxx h hpp m mm swift pl pm lua sql sh ex exs erl xml json",
);
/** A dotted name that begins like this is a package or a class, whatever it ends with. */
const PACKAGE = wordSet("com net org edu gov io java javax android sun system dev app kernel sys http https");

/** Asked of every word: a loop is faster than an expression. */
function hasDigit(word: string): boolean {
  for (let i = 0; i < word.length; i++) if (classOf(word.charCodeAt(i)) === DIGIT) return true;
  return false;
}

/** proxy.example.com, ns1.corp.example.de: ends in a domain, does not begin like a package. */
function isHost(word: string): boolean {
  const last = word.lastIndexOf(".");
  const first = word.indexOf(".");
  if (last <= 0) return false;
  const end = word.slice(last + 1);
  const country = COUNTRY.has(end);
  if (country ? first === last : !GENERIC.has(end)) return false;
  if (word.includes("..") || word.includes("/") || word.includes("_")) return false;
  if (country && DOUBTFUL.has(end) && !word.includes("-") && !hasDigit(word)) return false;
  return !PACKAGE.has(word.slice(0, first).toLowerCase());
}

/** A dotted word before a port, if it does not name a source file. */
function isHostBeforePort(word: string): boolean {
  const last = word.lastIndexOf(".");
  return last > 0 && last < word.length - 2 && !word.includes("/") && !SOURCES.has(word.slice(last + 1));
}

const EMAIL = /^[^@]+@[^@][^@.]*\.[^@]*[A-Za-z\u0080-\uffff]$/;

const HEX_WORDS = wordSet("accede acceded beaded decade deface defaced efface effaced facade");

/** Letters alone. All hexadecimal and of one case are, from six on, no word of a language but a few. */
export function maskLetters(word: string): string {
  // The one host that is written as a word.
  if (word === "localhost") return "<host>";
  return word.length >= 6 && /^(?:[a-f]+|[A-F]+)$/.test(word) && !HEX_WORDS.has(word.toLowerCase()) ? "<hex>" : word;
}

/** A word without colons and slashes: the last step. */
function maskSimple(word: string): string {
  if (word.includes("@")) {
    if (EMAIL.test(word)) return "<email>";
    const at = word.indexOf("@");
    if (hasDigit(word)) return `${maskSimple(word.slice(0, at))}@${maskSimple(word.slice(at + 1))}`;
  }
  if (word.includes(".") && isHost(word)) return "<host>";
  return maskPlain(word);
}

function maskPlain(word: string): string {
  return hasDigit(word) ? maskNumber(word) : maskLetters(word);
}

/** hh:mm, hh:mm:ss, with a fraction or a zone; or a date with a time. */
const TIME = /^\d{1,3}(?::\d\d){1,2}(?:[.Z+-][\d:Z]*)?$|^\d...-..-.....:/;
/** IPv6 or a hardware address: hexadecimal groups of at most four. */
const GROUPS = /^(?:[\da-fA-F]{0,4}[:.%])*[\da-fA-F]{0,4}$/;
const PORT = /^\d{2,5}$/;

/** Three colons or more, or two that touch. */
function isColonAddress(word: string, colons: number): boolean {
  if (colons < 2 || (colons < 3 && !word.includes("::")) || (colons !== 5 && word !== "::" && !hasDigit(word))) return false;
  return GROUPS.test(word);
}

function withColons(word: string): string {
  if (TIME.test(word)) return "<time>";
  const parts = word.split(":");
  if (isColonAddress(word, parts.length - 1)) return "<ip>";
  let out = "";
  let before = "";
  for (let i = 0; i < parts.length; i++) {
    const source = parts[i] as string;
    const port = i + 1 < parts.length && PORT.test(parts[i + 1] as string);
    const part = port && isHostBeforePort(source) ? "<host>" : withSlashes(source, i > 0);
    // A port belongs to its host.
    if (part === "<num>" && (before.endsWith("<ip>") || before.endsWith("<host>"))) before = "";
    else {
      out += i > 0 ? `:${part}` : part;
      before = part;
    }
  }
  return out;
}

/** Whole paths are paths; "n/a", "and/or" and "HTTP/2" are words on both sides of a slash; "/10.0.0.1" is an address. */
function withSlashes(word: string, inside: boolean): string {
  const first = word.indexOf("/");
  if (first < 0) return maskSimple(word);
  const second = word.indexOf("/", first + 1);
  const tail = second < 0 ? maskSimple(word.slice(first + 1)) : "";
  const address = tail === "<ip>" || tail === "<host>";
  if (first === 0) return word === "/" ? word : address ? `/${tail}` : "<path>";
  if (!hasDigit(word)) return second < 0 && (inside || !word.includes(".", first)) ? word : "<path>";
  const head = maskSimple(word.slice(0, first));
  if (head === "<ip>") return "<ip>";
  if (second > 0) return maskNumber(word) === "<time>" ? "<time>" : "<path>";
  return address ? tail : `${head}/${tail}`;
}

/** A word with at least one joint or digit, without its trailing punctuation. */
export function maskWord(word: string): string {
  // Most words have none of these: for speed alone.
  if (!/[:/\\@.]/.test(word)) return maskPlain(word);
  if (word.startsWith(":\\", 1) || word.indexOf("\\") !== word.lastIndexOf("\\")) return "<path>";
  if (word.includes(":")) return withColons(word);
  return withSlashes(word, false);
}
