/** The other half. Types do not close a cycle, values do. */
import { a } from "./cycle-a.ts";
import type { TypeOnlyA } from "./type-cycle-a.ts";

export const b = (): number => a();
export type B = TypeOnlyA;
