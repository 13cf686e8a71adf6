/** The mask: what changes from one failure to the next becomes a typed placeholder. One pass; a mask of a mask is itself. */
import { classOf, DIGIT, endOf, JOINT, LETTER, MARK, QUOTE, SPACE, wordSet } from "./characters.ts";
import { unitOf, withoutDigits } from "./mask-number.ts";
import { dateEnd, monthYearEnd, queryEnd, quotedNameEnd, urlEnd } from "./mask-spans.ts";
import { maskLetters, maskWord } from "./mask-word.ts";

/** Every placeholder, as an expression; nothing else in brackets counts as one. */
export const PLACEHOLDER = "<(?:num|id|hex|uuid|ip|host|url|path|email|str|time|duration|size|version|bool)>";
const PLACEHOLDER_HERE = new RegExp(PLACEHOLDER, "y");

/** After these a word is a value. */
const VALUE_MARKS = "=:(,[{";
const CONSTANTS = wordSet("true false null none nil None True False undefined");

const COLON = 58;

/** What a placeholder stands for in one text. */
export interface Hidden {
  readonly placeholder: string;
  readonly text: string;
}

class Masker {
  private readonly text: string;
  private readonly hidden: Hidden[] | undefined;
  private at = 0;
  private out = "";
  /** A space was read and not yet written: the last one of a text is never written. */
  private gap: boolean = false;
  /** Whether the last thing written is a bare number that a unit may still follow, and how the output was before it. */
  private number: boolean = false;
  private numberFrom = 0;
  private beforeNumber = "";
  /** Where the last placeholder that stood in the text itself ended, and where the last word did. */
  private placeholderEnd = -1;
  private wordEnd = -1;
  /** The last mark that was not a space: tells a value (after "=" or ":") from a word. */
  private mark = "";

  constructor(text: string, hidden?: Hidden[]) {
    this.text = text;
    this.hidden = hidden;
  }

  run(): string {
    const { text } = this;
    while (this.at < text.length) {
      const kind = classOf(text.charCodeAt(this.at));
      if (kind === SPACE) {
        this.at++;
        this.gap = this.out !== "";
      } else if (kind === QUOTE) this.quote();
      else if (kind === MARK) this.punctuation();
      else this.word();
    }
    return this.out;
  }

  private write(part: string): void {
    if (this.gap) this.out += " ";
    this.gap = false;
    this.out += part;
  }

  /** A word or what stands for it; `from` to `to` is where it was. */
  private put(part: string, from: number, to = this.at): void {
    if (this.hidden !== undefined && part !== this.text.slice(from, to)) {
      this.hidden.push({ placeholder: part, text: this.text.slice(from, to) });
    }
    this.number = part === "<num>";
    if (this.number) {
      this.numberFrom = from;
      this.write("");
      this.beforeNumber = this.out;
    }
    this.write(part);
    this.mark = "";
  }

  private punctuation(): void {
    const { text, at: start } = this;
    const end = text[start] === "<" ? endOf(PLACEHOLDER_HERE, text, start) : -1;
    if (end > 0) {
      this.at = this.placeholderEnd = end;
      this.put(text.slice(start, end), start);
      if (this.wordEnd === start) this.number = false;
      return;
    }
    this.at++;
    this.mark = text[start] as string;
    this.write(this.mark);
    this.number = false;
  }

  private quote(): void {
    const start = this.at;
    const end = quotedNameEnd(this.text, start, this.mark);
    if (end > 0) {
      this.at = end;
      this.put("<str>", start);
      return;
    }
    this.at++;
    this.number = false;
    this.write(this.text[start] as string);
  }

  private word(): void {
    const { text, at: start } = this;
    let plain = true;
    let end = start;
    for (; end < text.length; end++) {
      const code = text.charCodeAt(end);
      const kind = classOf(code);
      if (kind === LETTER) continue;
      if (kind !== DIGIT && kind !== JOINT) break;
      plain = false;
      if (code === COLON && end > start && text.startsWith("//", end + 1)) {
        this.url(start, end);
        return;
      }
    }
    this.wordEnd = this.at = end;
    // A placeholder right beside it: this is the rest of a word that was masked before.
    const touches = this.placeholderEnd === start || (text[end] === "<" && endOf(PLACEHOLDER_HERE, text, end) > 0);
    if (plain && !touches) this.plain(start);
    else this.joined(start, touches);
  }

  /** Scheme, "://" and everything up to a space, a quote or a closing bracket. */
  private url(start: number, colon: number): void {
    const { text } = this;
    let scheme = colon;
    while (scheme > start && classOf(text.charCodeAt(scheme - 1)) === LETTER) scheme--;
    // What is glued to the scheme, as in "jar:file://".
    if (scheme > start) this.write(withoutDigits(text.slice(start, scheme)));
    this.at = urlEnd(text, colon + 3);
    this.put("<url>", scheme);
  }

  private plain(start: number): void {
    const word = this.text.slice(start, this.at);
    if (this.number && this.gap && this.extendNumber(start, word)) return;
    const date = isCapital(word) ? dateEnd(this.text, start) : -1;
    if (date > 0) {
      this.at = date;
      this.put("<time>", start);
    } else
      this.put(this.mark !== "" && VALUE_MARKS.includes(this.mark) && CONSTANTS.has(word) ? "<bool>" : maskLetters(word), start);
  }

  /** Whether the number before was the beginning of something longer, "5 seconds" or "17 Jun 2005"; then that is written. */
  private extendNumber(start: number, word: string): boolean {
    const unit = unitOf(word, false);
    const date = isCapital(word) ? monthYearEnd(this.text, start) : -1;
    if (unit === undefined && date < 0) return false;
    if (date > 0) this.at = date;
    this.out = this.beforeNumber;
    this.gap = false;
    this.hidden?.pop();
    this.put(unit ?? "<time>", this.numberFrom);
    return true;
  }

  private joined(start: number, touches: boolean): void {
    const { text, wordEnd } = this;
    let end = wordEnd;
    // Sentence marks at the end belong to the text around the word.
    while (end > start && isTrailing(text.charCodeAt(end - 1))) end--;
    if (end > start) {
      const word = text.slice(start, end);
      const masked = touches ? withoutDigits(word) : maskWord(word);
      this.put(masked, start, end);
      if (masked === "<path>" && end === wordEnd && text[end] === "?") this.at = queryEnd(text, end);
    }
    if (end < wordEnd) {
      this.write(text.slice(end, wordEnd));
      this.mark = text[wordEnd - 1] as string;
      this.number = false;
    }
  }
}

/** One of . : - # */
function isTrailing(code: number): boolean {
  return code === 46 || code === 58 || code === 45 || code === 35;
}

function isCapital(word: string): boolean {
  const code = word.charCodeAt(0);
  return code >= 65 && code <= 90;
}

/** What the mask hides, in the order of its placeholders. */
export function hiddenIn(text: string): Hidden[] {
  const hidden: Hidden[] = [];
  new Masker(text, hidden).run();
  return hidden;
}

/** `text` with its variable parts replaced by placeholders. */
export function mask(text: string): string {
  return new Masker(text).run();
}
