/**
 * Enqueue in the caller's transaction, with the real libraries.
 */
import { describe } from "vitest";
import { KINDS } from "./libraries/kinds.ts";
import { judge } from "./support/judge.ts";

describe.each(KINDS.map((kind) => [kind.name, kind] as const))("%s", (_, kind) => judge(kind));
