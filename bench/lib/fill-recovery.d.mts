import type { Client } from "pg";

export interface FillRecovery {
  readonly groups: number;
  readonly occurrences: number;
  readonly items: number;
  readonly redrives: number;
}
export function fillRecovery(client: Client, schema: string, what: FillRecovery): Promise<{ readonly redriveId: string }>;
export function settleRecovery(client: Client, schema: string): Promise<void>;
