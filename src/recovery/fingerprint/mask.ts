/**
 * The mask: an error text with everything that changes from one failure to the next replaced by a typed placeholder. Pure, one
 * pass from left to right, no expression that could run back; a mask of a mask is itself. Spaces and control characters
 * become one space.
 */
import { classOf, DIGIT, isHexDigit, isUpper, JOINT, LETTER, MARK, QUOTE, SPACE } from "./characters.ts";
import { monthYearEnd, wordDateEnd } from "./dates.ts";
import { isHexWord, type Joints, LOCALHOST, maskWord } from "./mask-word.ts";
import { placeholderAt, withoutDigits } from "./placeholders.ts";
import { queryEnd, quotedNameEnd, urlEnd } from "./spans.ts";
import { unitOf } from "./units.ts";

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
  /** Used again for each word: what joints it has. */
  private readonly joints: Joints = { digits: false, slashes: 0, backslash: false, colons: 0 };
  /** The last mark that was not a space: tells a value (after "=" or ":") from a word. */
  private mark = 0;

  constructor(text: string, hidden?: Hidden[]) {
    this.text = text;
    this.hidden = hidden;
  }

  run(): string {
    const { text } = this;
    while (this.at < text.length) {
      const code = text.charCodeAt(this.at);
      switch (classOf(code)) {
        case SPACE:
          this.space();
          break;
        case QUOTE:
          this.quote();
          break;
        case MARK:
          this.punctuation(code);
          break;
        default:
          this.word();
      }
    }
    return this.out;
  }

  private space(): void {
    const { text } = this;
    do this.at++;
    while (this.at < text.length && classOf(text.charCodeAt(this.at)) === SPACE);
    this.gap = this.out !== "";
  }

  private write(part: string): void {
    if (this.gap) {
      this.out += " ";
      this.gap = false;
    }
    this.out += part;
  }

  private punctuation(code: number): void {
    if (code === 60) {
      const known = placeholderAt(this.text, this.at);
      if (known !== undefined) {
        const start = this.at;
        this.at += known.length;
        this.put(known, start);
        this.placeholderEnd = this.at;
        if (this.wordEnd === start) this.number = false;
        return;
      }
    }
    this.write(this.text[this.at] as string);
    this.at++;
    this.mark = code;
    this.number = false;
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
    this.mark = 0;
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
    const { text } = this;
    const start = this.at;
    const { joints } = this;
    let plain = true;
    let end = start;
    for (; end < text.length; end++) {
      const code = text.charCodeAt(end);
      const kind = classOf(code);
      if (kind === LETTER) continue;
      if (plain && (kind === DIGIT || kind === JOINT)) {
        joints.digits = joints.backslash = plain = false;
        joints.slashes = joints.colons = 0;
      }
      if (kind === DIGIT) joints.digits = true;
      else if (kind !== JOINT) break;
      else if (code === 58) {
        joints.colons++;
        if (text[end + 1] === "/" && text[end + 2] === "/" && end > start) {
          this.url(start, end);
          return;
        }
      } else if (code === 47) joints.slashes++;
      else if (code === 92) joints.backslash = true;
    }
    this.wordEnd = end;
    const masked = this.placeholderEnd === start || (text.charCodeAt(end) === 60 && placeholderAt(text, end) !== undefined);
    if (plain && !masked) this.plain(start, end);
    else this.joined(start, end, joints, masked);
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

  private plain(start: number, end: number): void {
    const { text } = this;
    this.at = end;
    const word = text.slice(start, end);
    const length = end - start;
    if (this.number && this.gap && length <= 12) {
      const unit = unitOf(word, false);
      if (unit !== undefined) {
        this.extend(unit);
        return;
      }
      const date = monthYearEnd(text, start, end);
      if (date > 0) {
        this.at = date;
        this.extend("<time>");
        return;
      }
    }
    if (length >= 3 && length <= 9 && isUpper(text.charCodeAt(start))) {
      const date = wordDateEnd(text, start, end);
      if (date > 0) {
        this.at = date;
        this.put("<time>", start);
        return;
      }
    }
    if (isValueMark(this.mark) && CONSTANTS.has(word)) {
      this.put("<bool>", start);
      return;
    }
    const hex = length >= 6 && isHexDigit(text.charCodeAt(end - 1)) && isHexWord(word);
    this.put(word === LOCALHOST ? "<host>" : hex ? "<hex>" : word, start);
  }

  /** The number before was the beginning of something longer. */
  private extend(placeholder: string): void {
    this.out = this.beforeNumber;
    this.gap = false;
    this.hidden?.pop();
    this.put(placeholder, this.numberFrom);
  }

  /** `touches`: a placeholder stands right beside it, so it is the rest of a word that was masked before. */
  private joined(start: number, wordEnd: number, joints: Joints, touches: boolean): void {
    const { text } = this;
    let end = wordEnd;
    // Sentence marks at the end belong to the text around the word.
    while (end > start && isTrailing(text.charCodeAt(end - 1))) {
      end--;
      if (text.charCodeAt(end) === 58) joints.colons--;
    }
    this.at = wordEnd;
    if (end > start) {
      const word = text.slice(start, end);
      const masked = touches ? withoutDigits(word) : maskWord(word, joints);
      this.put(masked, start, end);
      if (masked === "<path>" && end === wordEnd && text[end] === "?") this.at = queryEnd(text, end);
    }
    if (end < wordEnd) {
      this.write(text.slice(end, wordEnd));
      this.mark = text.charCodeAt(wordEnd - 1);
      this.number = false;
    }
  }
}

function isTrailing(code: number): boolean {
  return code === 46 || code === 58 || code === 45 || code === 35;
}

/** After = : ( , [ { a word is a value. */
function isValueMark(code: number): boolean {
  return code === 61 || code === 58 || code === 40 || code === 44 || code === 91 || code === 123;
}

const CONSTANTS = new Set("true false null none nil None True False undefined".split(" "));

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
