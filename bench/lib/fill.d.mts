import type { Client } from "pg";

export interface Fill {
  readonly count: number;
  readonly tenants: number;
  readonly delivered?: number;
  readonly dead?: number;
  readonly fromMs: number;
  readonly payload?: string;
  readonly keyed?: boolean;
}
export function fill(client: Client, schema: string, what: Fill): Promise<void>;
