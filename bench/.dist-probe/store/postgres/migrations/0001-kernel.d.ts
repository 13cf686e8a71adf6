/**
 * The kernel's tables: the promise is written once and never updated; what is due is a narrow row that a claim deletes;
 * a lease is one row for a whole batch; each attempt leaves one row. See docs/decisions/0002.
 */
import type { Migration } from "./migration.ts";
export declare const kernel: Migration;
