import type { Migration } from "./migration.ts";
export declare const MIGRATIONS: readonly Migration[];
