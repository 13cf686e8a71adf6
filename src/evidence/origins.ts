/**
 * In which installation a block or a departure was made: its note names it. A chain that was moved (transfer) goes on in another one, so what
 * came is written down with the last number that came: up to there the old name is expected, after it only our own.
 */
import type { Run } from "../store/home.ts";
import { installationOf } from "./seal.ts";

export interface Origins {
  ofBlock(height: string): string;
  ofDeparture(id: string): string;
}

export async function originsOf(run: Run, s: string): Promise<Origins> {
  const own = await installationOf(run, s);
  const moved = await run(
    `select kind, number::text, place from ${s}.evidence_anchor where kind in ('moved_block', 'moved_departure') order by number`,
  );
  const of = (wanted: string) => (number: string) =>
    moved.find(([kind, last]) => kind === wanted && BigInt(number) <= BigInt(last ?? "0"))?.[2] ?? own;
  return { ofBlock: of("moved_block"), ofDeparture: of("moved_departure") };
}
