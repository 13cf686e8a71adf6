/**
 * Reads a file of messages: once as a whole to know that it is one (no byte is missing, changed or added), and then line by line. Neither holds
 * more than one line.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { MakegoodError } from "../message/errors.ts";
import { isObject } from "../message/json.ts";
import type { MovableMessage } from "../store/movable.ts";
import type { RecordTable } from "../store/movable-records.ts";
import { type Closing, FORMATS, type Header, messageOf, type TopicLine } from "./format.ts";
import { RecordSums, Sums } from "./sums.ts";

/** A payload of a megabyte, each byte of it escaped, and its history. */
const LINE_BYTES_MAX = 64 * 1_048_576;

export type Item =
  | { readonly topic: TopicLine }
  | { readonly table: RecordTable; readonly row: string | null }
  | { readonly message: MovableMessage };

export interface ReadFile {
  readonly header: Header;
  readonly closing: Closing;
}

function refuse(path: string, why: string): MakegoodError {
  const text = `${path} is not a whole export of makegood: ${why}; nothing was written`;
  return new MakegoodError("invalid_request", text, { path });
}

/** Every line with its line feed; what follows the last one comes as it is. */
async function* linesOf(path: string): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 262_144 }) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      yield Buffer.concat([...rest, chunk.subarray(from, at + 1)]);
      rest = [];
      restBytes = 0;
      from = at + 1;
    }
    rest.push(chunk.subarray(from));
    restBytes += chunk.length - from;
    if (restBytes > LINE_BYTES_MAX) throw refuse(path, `a line of it has more than ${LINE_BYTES_MAX} bytes`);
  }
  if (restBytes > 0) yield Buffer.concat(rest);
}

function parse(path: string, line: Buffer, number: number): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line.toString("utf8"));
    if (isObject(value) && line.at(-1) === 10) return value;
  } catch {
    // Said below.
  }
  throw refuse(path, `line ${number} is cut off or no JSON`);
}

function headerOf(path: string, value: Record<string, unknown>): Header {
  if (FORMATS.includes(value.makegood_export)) return value as unknown as Header;
  if (typeof value.makegood_export !== "number") throw refuse(path, "its first line says something else");
  throw refuse(path, `it has format ${value.makegood_export}, and this version reads ${FORMATS.join(" and ")}`);
}

/** Every topic, row and message, in the order of the file, and each table once before its rows; returns what its first and last lines say. Checks all of it on the way. */
export async function* readItems(path: string): AsyncGenerator<Item, ReadFile> {
  const sha = createHash("sha256");
  const sums = new Sums();
  const records = new RecordSums();
  let header: Header | undefined;
  let closing: Closing | undefined;
  let table: RecordTable | undefined;
  let topics = 0;
  let number = 0;
  for await (const line of linesOf(path)) {
    const value = parse(path, line, ++number);
    if (closing) throw refuse(path, "something follows its last line");
    if (header === undefined) header = headerOf(path, value);
    else if (isObject(value.end)) {
      closing = value.end as unknown as Closing;
      continue;
    } else if (value.topic !== undefined) {
      topics++;
      yield { topic: value.topic as TopicLine };
    } else if (value.table !== undefined) {
      table = value.table as RecordTable;
      records.begin(table);
      yield { table, row: null };
    } else if (typeof value.row === "string") {
      if (!table) throw refuse(path, `line ${number} belongs to no table`);
      records.add(table, value.row);
      yield { table, row: value.row };
    } else {
      const message = messageOf(value.message);
      sums.add(message);
      yield { message };
    }
    sha.update(line);
  }
  if (!header) throw refuse(path, "it is empty");
  if (!closing) throw refuse(path, "its last line is missing, so it was cut off");
  if (closing.sha256 !== sha.digest("hex")) throw refuse(path, "it was changed after it was written");
  const found = JSON.stringify([topics, sums.count, sums.hash, sums.list(), records.list()]);
  if (found !== JSON.stringify([closing.topics, closing.messages, closing.hash, closing.sums, closing.records ?? []]))
    throw refuse(path, "its sums are not those of its lines");
  return { header, closing };
}

/** Refuses what is not whole. `each` hears of every message, for those who show how far it is. */
export async function checkFile(path: string, each: (done: number) => void = () => {}): Promise<ReadFile> {
  const items = readItems(path);
  for (let done = 0; ; ) {
    const { value, done: ended } = await items.next();
    if (ended) return value;
    if ("message" in value) each(++done);
  }
}
