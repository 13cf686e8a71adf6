import { createHash } from "node:crypto";

/** This documents the function, not the file. */
export const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
