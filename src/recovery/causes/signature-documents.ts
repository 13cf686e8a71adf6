/** The catalogue of causes in use: the shipped signatures, overlaid by what people stored; and how a cause is found by them. */
import { MakegoodError } from "../../message/errors.ts";
import type { Events } from "../../observe/events.ts";
import type { Documents } from "../documents.ts";
import { type Book, createBook } from "../rules/book.ts";
import { SHIPPED_SIGNATURES } from "./catalogue/shipped.ts";
import { type CauseFinder, causeFinder } from "./cause-of.ts";
import { parseSignature } from "./parse-signature.ts";
import { SIGNATURE_LIMITS, type Signature } from "./signature.ts";

export interface SignatureBook extends Book<Signature> {
  finder(): Promise<CauseFinder>;
}

export function createSignatureBook(documents: Documents, events: Events): SignatureBook {
  const book = createBook<Signature>({
    ...{ documents, events, kind: "cause", shipped: SHIPPED_SIGNATURES, parse: parseSignature, json: (one) => one },
    // The most certain is asked first; of equals the one that stands first, and what people stored stands behind what is shipped.
    ordered: (signatures) => [...signatures].sort((a, b) => b.certainty - a.certainty),
    check({ length }) {
      const { signaturesMax } = SIGNATURE_LIMITS;
      if (length > signaturesMax) throw new MakegoodError("invalid_config", `there are more than ${signaturesMax} signatures`);
    },
  });
  let made: { readonly signatures: readonly Signature[]; readonly find: CauseFinder } | undefined;
  return {
    ...book,
    async finder() {
      const signatures = await book.all();
      if (made?.signatures !== signatures) made = { signatures, find: causeFinder(signatures) };
      return made.find;
    },
  };
}
