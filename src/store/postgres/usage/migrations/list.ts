/**
 * The usage preset's own migrations: numbered apart from the kernel's, proved in a ledger of their own, and applied only where the
 * preset is used.
 */
import type { MigrationSet } from "../../migrations/migration.ts";
import { usageTables } from "./0001-usage.ts";

export const USAGE_SET: MigrationSet = { name: "usage", ledger: "migration_usage", migrations: [usageTables] };
