/**
 * What is signed, as text: of a block its place in the chain, the numbers it covers and their root; of a departure which rows left, why and
 * at whose word. A text is read back line by line, and what a table says beside it must agree.
 */
import type { EvidenceSource } from "../store/shared/evidence-rows.ts";
import { sha256 } from "./merkle.ts";

export interface Block {
  readonly height: string;
  readonly previous: Buffer;
  readonly firstPos: string;
  readonly lastPos: string;
  readonly root: Buffer;
  readonly sealedAt: string;
}

export const BEGINNING: Buffer = Buffer.alloc(32);

const line = (name: string, value: string): string => `${name} ${value}\n`;
/** A reason may have several lines; the text has one for it. */
const oneLine = (text: string): string => JSON.stringify(text);

export function blockText(installation: string, { height, previous, firstPos, lastPos, root, sealedAt }: Block): string {
  const head = `makegood/evidence/${installation}\n${height}\n${root.toString("base64")}\n`;
  return `${head}${line("previous", previous.toString("base64"))}${line("positions", `${firstPos}-${lastPos}`)}${line("sealed", sealedAt)}`;
}

const FORM = /^makegood\/evidence\/(\S+)\n([0-9]+)\n(\S+)\nprevious (\S+)\npositions ([0-9]+)-([0-9]+)\nsealed (\S+)\n$/;

export function readBlockText(text: string): (Block & { readonly installation: string }) | null {
  const [, installation = "", height, root = "", previous = "", firstPos, lastPos, sealedAt] = FORM.exec(text) ?? [];
  if (height === undefined || firstPos === undefined || lastPos === undefined || sealedAt === undefined) return null;
  const bytes = { root: Buffer.from(root, "base64"), previous: Buffer.from(previous, "base64") };
  return { installation, height, ...bytes, firstPos, lastPos, sealedAt };
}

export const hashOf = (text: string): Buffer => sha256(Buffer.from(text));

export interface Departure {
  readonly kind: "retired" | "erased";
  readonly source: EvidenceSource["name"];
  readonly firstPos: string;
  readonly lastPos: string;
  /** Both null: the rows are marked one by one. */
  readonly fromAt: string | null;
  readonly toAt: string | null;
  readonly count: number;
  readonly root: Buffer;
  readonly at: string;
  readonly actor: string;
  readonly reason: string;
}

export function departureText(installation: string, one: Departure): string {
  const { kind, source, firstPos, lastPos, fromAt, toAt, count, root, at, actor, reason } = one;
  return [
    `makegood/evidence-departure/${installation}\n${count}\n${root.toString("base64")}\n`,
    line(kind, source),
    line("positions", `${firstPos}-${lastPos}`),
    line("recorded", fromAt === null ? "any" : `${fromAt} ${toAt}`),
    line("at", at),
    line("actor", oneLine(actor)),
    line("reason", oneLine(reason)),
  ].join("");
}
