/**
 * Seals texts that must not be read where they are written: AES-256-GCM under a key derived from the operator's secret, bound to
 * the message's id, so that a sealed payload cannot be moved to another message. A wrong key or a changed byte is reported, never
 * guessed at.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync } from "node:crypto";
import { MakegoodError } from "../../../message/errors.ts";
import type { Random } from "../../../platform/random.ts";

export interface Sealer {
  /** Names the key without telling it. */
  readonly keyId: string;
  seal(text: string, id: string): string;
  open(sealed: string, id: string): { readonly text: string } | { readonly fault: string };
}

const SECRET_CHARS_MIN = 16;
const IV_BYTES = 12;
const TAG_BYTES = 16;

export function createSealer(secret: string, random: Random): Sealer {
  if (secret.length < SECRET_CHARS_MIN) {
    throw new MakegoodError("invalid_config", `sealKey must have at least ${SECRET_CHARS_MIN} characters`, { field: "sealKey" });
  }
  const key = Buffer.from(hkdfSync("sha256", secret, "makegood", "seal v1", 32));
  const keyId = createHash("sha256").update(key).digest("hex").slice(0, 8);
  return {
    keyId,
    seal(text, id) {
      const iv = random.bytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(id));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return `v1.${keyId}.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64url")}`;
    },
    open(sealed, id) {
      const [version, madeWith, data = ""] = sealed.split(".");
      if (version !== "v1") return { fault: "it is sealed in a form that this version does not know" };
      if (madeWith !== keyId) return { fault: `it is sealed with key ${madeWith}, and the one given is ${keyId}` };
      const bytes = Buffer.from(data, "base64url");
      try {
        const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES))
          .setAAD(Buffer.from(id))
          .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
        const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
        return { text: text.toString("utf8") };
      } catch {
        return { fault: "its seal is broken: it was changed after it was written" };
      }
    },
  };
}
