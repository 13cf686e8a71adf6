/** Not a cycle: it is closed by a type. */
import { b } from "./cycle-b.ts";

export type TypeOnlyA = typeof b;
