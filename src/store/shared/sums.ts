/**
 * What conservation does with sums, in any store: amounts are added exactly, what is here is held against what was accepted, and seals are made a chain.
 */
import { createHash } from "node:crypto";

interface Amount {
  readonly units: bigint;
  readonly places: number;
}

const AMOUNT = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,2}))?$/;

function amountOf(text: string): Amount | null {
  const [, sign, whole, part = "", exponent = "0"] = AMOUNT.exec(text) ?? [];
  if (whole === undefined) return null;
  const units = BigInt(`${sign}${whole}${part}`);
  const places = part.length - Number(exponent);
  return places < 0 ? { units: units * 10n ** BigInt(-places), places: 0 } : { units, places };
}

function textOf({ units, places }: Amount): string {
  const digits = (units < 0n ? -units : units).toString().padStart(places + 1, "0");
  const part = places === 0 ? "" : digits.slice(-places).replace(/0+$/, "");
  return `${units < 0n ? "-" : ""}${digits.slice(0, digits.length - places)}${part === "" ? "" : `.${part}`}`;
}

/** Exact, however many places the numbers have; 1.50 is 1.5. What is no amount adds nothing. */
export function addedAmounts(...texts: readonly string[]): string {
  const amounts = texts.flatMap((text) => amountOf(text) ?? []);
  const places = Math.max(0, ...amounts.map((one) => one.places));
  const units = amounts.reduce((sum, one) => sum + one.units * 10n ** BigInt(places - one.places), 0n);
  return textOf({ units, places });
}

export interface Compared {
  readonly accepted: bigint;
  readonly here: bigint;
  /** Went with retention. */
  readonly gone: bigint;
  /** Whether the sums of ids, and of ids with payloads, are the same. */
  readonly sameIds: boolean;
  readonly samePayloads: boolean;
  /** Null: not added up. */
  readonly money: { readonly accepted: string; readonly now: string } | null;
}

/** How an account and what was read of it differ; null: they do not. */
export function difference(of: Compared): { kind: string; detail: string } | null {
  const { accepted, here, gone, sameIds, samePayloads, money } = of;
  const n = here + gone;
  const words = `${accepted} were accepted, ${here} are here and ${gone} went with retention`;
  if (n < accepted) return { kind: "message_gone", detail: words };
  if (n > accepted) return { kind: "more_than_accepted", detail: words };
  if (!sameIds) return { kind: "ids_swapped", detail: `${n} are as many as were accepted, but not the same ones` };
  if (money && addedAmounts(money.now) !== addedAmounts(money.accepted))
    return {
      kind: "money_changed",
      detail: `${addedAmounts(money.accepted)} was accepted, ${addedAmounts(money.now)} is here or went with retention`,
    };
  return samePayloads ? null : { kind: "payload_changed", detail: "the same ids with other payloads" };
}

/** The head of a seal, of its words and the head before. */
export function headOf(before: string, words: readonly string[]): string {
  return createHash("sha256")
    .update(JSON.stringify([before, ...words]))
    .digest("hex");
}
