/**
 * One line of a stack trace, in eight languages: the function and the file it names, without line numbers and addresses.
 * Plain string searches on a line that was cut to a bounded length.
 */

export interface Frame {
  readonly function: string;
  readonly file: string;
  /** Frames of a runtime say nothing about who failed: one of the program is preferred. */
  readonly runtime: boolean;
  /** Whether the next line belongs to it. */
  readonly twoLines: boolean;
}

function fileName(path: string): string {
  const cut = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"));
  return path.slice(cut + 1);
}

/** "x.js:10:5" → "x.js"; a drive letter stays. */
function withoutLine(place: string): string {
  let end = place.length;
  for (let part = 0; part < 2; part++) {
    const colon = place.lastIndexOf(":", end - 1);
    if (colon < 2 || !isCount(place.slice(colon + 1, end))) break;
    end = colon;
  }
  return place.slice(0, end);
}

function isCount(text: string): boolean {
  return text !== "" && text.length < 10 && [...text].every((c) => c >= "0" && c <= "9");
}

function frame(name: string, place: string, runtime: boolean, twoLines = false): Frame | undefined {
  const file = fileName(place.trim());
  return name.trim() === "" && file === "" ? undefined : { function: name.trim(), file, runtime, twoLines };
}

/** JavaScript, Java and C#: "at …". */
function atFrame(line: string): Frame | undefined {
  if (!line.startsWith("at ")) return undefined;
  let rest = line.slice(3);
  if (rest.startsWith("async ")) rest = rest.slice(6);
  const source = rest.lastIndexOf(" in ");
  if (source > 0 && rest.includes(":line ", source)) {
    const place = rest.slice(source + 4, rest.indexOf(":line ", source));
    return frame(beforeParenthesis(rest), place, rest.startsWith("System.") || rest.startsWith("Microsoft."));
  }
  const open = rest.indexOf("(");
  if (open < 0)
    return rest.includes("/") || rest.includes(":") ? frame("", withoutLine(rest), rest.startsWith("node:")) : undefined;
  const inside = rest.slice(open + 1, rest.lastIndexOf(")"));
  const place = withoutLine(inside);
  const name = beforeParenthesis(rest).trim();
  // Prose may begin with "at", too: a frame names a member or a place with a line.
  const spaces = name.split(" ").length - 1;
  if (!(place !== inside || inside.startsWith("node:") || (name.includes(".") && spaces === 0))) return undefined;
  const runtime =
    /^(node:|java\.|javax\.|jdk\.|sun\.|System\.|Microsoft\.)/.test(rest[0] === "(" ? inside : rest) ||
    inside.startsWith("node:");
  return frame(name, place === inside && !inside.includes(".") ? "" : place, runtime);
}

function beforeParenthesis(text: string): string {
  const open = text.indexOf("(");
  return open < 0 ? text : text.slice(0, open);
}

/** `File "/app/pay.py", line 4, in charge` */
function pythonFrame(line: string): Frame | undefined {
  if (!line.startsWith('File "')) return undefined;
  const end = line.indexOf('"', 6);
  const name = line.indexOf(", in ", end);
  if (end < 0 || !line.startsWith(", line ", end + 1)) return undefined;
  return frame(name < 0 ? "" : line.slice(name + 5), line.slice(6, end), line.includes("/lib/python"));
}

/** "pay.rb:4:in `charge'", with or without "from". */
function rubyFrame(line: string): Frame | undefined {
  const text = line.startsWith("from ") ? line.slice(5) : line;
  const at = text.indexOf(":in ");
  if (at <= 0 || !text.slice(0, at).includes(".rb:")) return undefined;
  const quoted = text.slice(at + 5);
  const end = quoted.indexOf("'");
  return frame(end < 0 ? quoted : quoted.slice(0, end), withoutLine(text.slice(0, at)), text.includes("/lib/ruby/"));
}

/** "#0 /app/Pay.php(12): Acme\Pay->charge()" */
function phpFrame(line: string): Frame | undefined {
  const space = line.indexOf(" ");
  if (line[0] !== "#" || !isCount(line.slice(1, space))) return undefined;
  const colon = line.indexOf("): ", space);
  if (colon < 0) return undefined;
  const place = line.slice(space + 1, line.lastIndexOf("(", colon));
  return frame(beforeParenthesis(line.slice(colon + 3)), place, place.startsWith("[internal function"));
}

/** "   4: pay::charge": the place stands on the next line, "at src/pay.rs:10:5". */
function rustFrame(line: string, next: string): Frame | undefined {
  const colon = line.indexOf(": ");
  if (colon <= 0 || !isCount(line.slice(0, colon))) return undefined;
  let name = line.slice(colon + 2).trim();
  const hash = name.lastIndexOf("::h");
  if (hash > 0 && name.length - hash === 19) name = name.slice(0, hash);
  if (!name.includes("::") && !next.startsWith("at ")) return undefined;
  const runtime = /^<?(std|core|alloc|backtrace|rust_begin_unwind|__rust|tokio)\b/.test(name);
  return frame(name, next.startsWith("at ") ? withoutLine(next.slice(3)) : "", runtime, next.startsWith("at "));
}

/** "main.charge(0xc000…)", its place on the next line: "/app/pay.go:10 +0x1d". */
function goFrame(line: string, next: string): Frame | undefined {
  const go = next.indexOf(".go:");
  if (go < 0 || !line.endsWith(")") || line.startsWith("at ")) return undefined;
  const name = line.startsWith("created by ") ? line.slice(11) : line.slice(0, line.lastIndexOf("("));
  return frame(name, next.slice(0, go + 3), name === "panic" || name.startsWith("runtime"), true);
}

export function frameOf(line: string, next: string): Frame | undefined {
  return atFrame(line) ?? pythonFrame(line) ?? phpFrame(line) ?? rubyFrame(line) ?? rustFrame(line, next) ?? goFrame(line, next);
}
