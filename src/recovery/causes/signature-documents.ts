/** The catalogue of causes in use: the shipped signatures, overlaid by what people stored; and how a cause is found by them. */
import { MakegoodError } from "../../message/errors.ts";
import type { Events } from "../../observe/events.ts";
import type { Documents } from "../documents.ts";
import { createBook } from "../rules/book.ts";
import { SHIPPED_SIGNATURES } from "./catalogue/shipped.ts";
import { type CauseFinder, causeFinder } from "./cause-of.ts";
import { parseSignature, type Signature } from "./signature.ts";

const SIGNATURES_MAX = 500;

export function createSignatureBook(documents: Documents, events: Events) {
  const book = createBook<Signature>({
    ...{ documents, events, kind: "cause", shipped: SHIPPED_SIGNATURES, parse: parseSignature, json: (one) => one },
    // The most certain is asked first; of equals the one that stands first, and what people stored stands behind what is shipped.
    ordered: (signatures) => [...signatures].sort((a, b) => b.certainty - a.certainty),
    check({ length }) {
      if (length > SIGNATURES_MAX) throw new MakegoodError("invalid_config", `there are more than ${SIGNATURES_MAX} signatures`);
    },
  });
  let made: { readonly signatures: readonly Signature[]; readonly find: CauseFinder } | undefined;
  return {
    ...book,
    async finder(): Promise<CauseFinder> {
      const signatures = await book.all();
      if (made?.signatures !== signatures) made = { signatures, find: causeFinder(signatures) };
      return made.find;
    },
  };
}
