/**
 * What a redrive is asked for: which messages, what is done to each, and how carefully. Checked in one go: every fault is reported.
 */
import type { RedriveMode, RedriveSelect } from "../../store/redrive.ts";

export interface RedrivePlan {
  /** So many first; the rest follows once these are known to have healed. 0: no canary. */
  readonly canary: number;
  /** Messages a second once the ramp is done. */
  readonly ratePerSecond: number;
  /** The rate doubles each second from `rampFrom` on. */
  readonly rampFrom: number;
  /** Stops by itself when more than this share of those whose fate is known failed; 1: never. */
  readonly failureShareMax: number;
  /** Not before so many are known (the canary counts as soon as it is whole). */
  readonly failureMin: number;
}

export const REDRIVE_DEFAULTS: RedrivePlan = { canary: 5, ratePerSecond: 50, rampFrom: 5, failureShareMax: 0.5, failureMin: 10 };

export const REDRIVE_LIMITS = {
  messagesMax: 1_000_000,
  /** More than this needs `confirm` (attack 26). */
  messagesUnconfirmed: 10_000,
  ratePerSecondMax: 5_000,
  generationMax: 10,
} as const;

export interface RedriveRequest extends Partial<RedrivePlan> {
  readonly select: Partial<Omit<RedriveSelect, "generationMax">>;
  readonly mode?: Extract<RedriveMode, "replay" | "new_key"> | undefined;
  readonly reason: string;
  /** Pressing twice under one key is one redrive. */
  readonly requestKey?: string | null | undefined;
  readonly dryRun?: boolean | undefined;
  /** How many messages the person saw; refused when the list is another size (also how a large one is confirmed). */
  readonly confirm?: number | undefined;
  /** Replays also what was replayed more often than the cap. */
  readonly generationMax?: number | undefined;
}
