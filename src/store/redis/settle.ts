/**
 * SETTLE in Redis: settlements as the arguments of their script, lease by lease, in pieces that Redis runs quickly.
 */
import { LIMITS } from "../../message/limits.ts";
import type { Settle, Settlement } from "../../message/settlement.ts";
import type { At, SettleResult } from "../store.ts";
import type { Db } from "./db.ts";
import { laneDigit } from "./rows.ts";
import { SETTLE } from "./scripts/settle.ts";

const PIECE = LIMITS.batchMessagesMax;

/** `onWork` hears which lanes have new work. */
export function createSettle(
  db: Db,
  onWork: (lanes: readonly string[]) => void,
): (settles: readonly Settle[], at?: At) => Promise<SettleResult[]> {
  return async (settles, at) => {
    db.port();
    const results: SettleResult[] = [];
    for (let from = 0; from < settles.length; from += PIECE) {
      const piece = settles.slice(from, from + PIECE);
      const [done, lanes] = await send(db, piece, at);
      for (const one of done) results.push(one);
      if (lanes.length > 0) onWork(lanes);
    }
    return results;
  };
}

async function send(db: Db, piece: readonly Settle[], at?: At): Promise<[results: SettleResult[], lanes: string[]]> {
  const { key, lease, message } = db.keys;
  const claims = byClaim(piece);
  const keys = [key("leased"), key("lanes"), key("settled"), key("waiters")];
  const messages: string[] = [];
  const args: (string | number)[] = [claims.length];
  for (const places of claims) {
    const { claim } = piece[places[0] as number] as Settle;
    keys.push(lease(claim.lease));
    args.push(claim.token, places.length);
    for (const place of places) {
      const one = piece[place] as Settle;
      messages.push(message(one.id));
      pushArgs(args, one);
    }
  }
  for (const name of messages) keys.push(name);
  const [done, lanes] = (await db.run(SETTLE, keys, args, at)) as [number[], string[]];
  const results = Array<SettleResult>(piece.length).fill("settled");
  // No results: all were settled.
  if (done.length > 0) {
    claims.flat().forEach((place, i) => {
      if (done[i] !== 1) results[place] = "lost";
    });
  }
  return [results, lanes];
}

/** Which settles of the piece are under the same claim, by their places. */
function byClaim(piece: readonly Settle[]): number[][] {
  const claims = new Map<string, number[]>();
  piece.forEach(({ claim }, place) => {
    const name = `${claim.lease} ${claim.token}`;
    const places = claims.get(name);
    if (places) places.push(place);
    else claims.set(name, [place]);
  });
  return [...claims.values()];
}

/** Kind, attempt, the row of the attempt before and after its moment, and what the kind needs. */
function pushArgs(args: (string | number)[], { attempt, durationMs, settlement }: Settle): void {
  const row = (outcome: string, counted: boolean): void => {
    args.push(`${attempt}|${outcome}|${counted ? 1 : 0}|`, `|${durationMs ?? ""}|`);
  };
  switch (settlement.kind) {
    case "delivered":
      args.push("d", attempt);
      row(settlement.outcome, true);
      return;
    case "release":
      args.push("u", attempt, "", "");
      return;
    case "retry":
      args.push("r", attempt);
      row(settlement.outcome, settlement.counted);
      args.push(settlement.delayMs, settlement.counted ? 1 : 0, laneDigit(settlement.suspicion, settlement.retried === true));
      args.push(detail(settlement));
      return;
    case "hold":
      args.push("h", attempt);
      row(settlement.outcome, settlement.counted);
      args.push(settlement.counted ? 1 : 0, settlement.reason, detail(settlement));
      return;
    case "dead":
      args.push("x", attempt);
      row(settlement.outcome, true);
      args.push(settlement.blocksOrder ? 1 : 0, detail(settlement));
  }
}

const detail = ({ code, error }: Extract<Settlement, { code: unknown }>): string => JSON.stringify([code, error]);
