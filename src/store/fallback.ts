/**
 * What deliver() sees of the fallback ladder: one way down, where the first rung that accepts wins, and one way up, where entries only
 * ever go to a store that does not have them yet (CON-8).
 */
import type { NewMessage } from "../message/message.ts";
import type { HandedDown } from "./ladder/format/handed-down.ts";
import type { StoreTraits, WorkStore } from "./store.ts";

export type RungName = "primary" | "secondary" | "journal" | "memory";
export type Survives = StoreTraits["survives"];

export type PutDown =
  /** `duplicate`: its key was there already with the same payload, and `id` is that message's. */
  | {
      readonly kind: "stored";
      readonly rung: RungName;
      readonly survives: Survives;
      readonly id: string;
      readonly duplicate: boolean;
    }
  /** The key belongs to message `id`, which has another payload (DF-17). */
  | { readonly kind: "conflict"; readonly rung: RungName; readonly id: string }
  /** Not even memory took it; its whole text is in the ERROR log. */
  | { readonly kind: "refused"; readonly code: string; readonly error: string };

/** What lies in one place below the primary store. */
export interface Holding {
  readonly place: Exclude<RungName, "primary">;
  /** Those that wait for the primary store; in the secondary store as of the last time it was asked. */
  readonly count: number;
  /** Those that the primary store would not take as they are, kept for a person. */
  readonly quarantined: number;
  /** Wall clock; null when nothing waits there. */
  readonly oldestAtMs: number | null;
  readonly survives: Survives;
}

export interface LadderStatus {
  /** `down`: it is not open yet, or failed when it was last used. */
  readonly primary: "up" | "down";
  /** What the next message handed down would survive, as far as it is known now. */
  readonly survives: Survives;
  /** The same for a message that the primary store does not take. */
  readonly survivesBelow: Survives;
  /** True: the journal is full, or refused what it was given last and has no more room since. */
  readonly journalRefuses: boolean;
  /** What everything that was accepted survives: never better than the worst place where something lies. */
  readonly durable: Survives;
  readonly holdings: readonly Holding[];
  /** Places of which nobody has said yet what lies there. */
  readonly unheard: readonly Holding["place"][];
  readonly waiting: { readonly journal: number; readonly memory: number };
  readonly quarantined: number;
  /** Wall clock; null when nothing waits below. */
  readonly oldestAtMs: number | null;
}

export interface Drained {
  /** Taken by a store above, and how many of those were there already. */
  readonly moved: number;
  readonly duplicates: number;
  /** Contradict what is there; quarantined. */
  readonly conflicts: number;
  /** Still below, as far as it is counted here: in memory and in the journal. */
  readonly left: number;
  /** False: the secondary store could not be read to its end, or something there is being attempted. */
  readonly whole: boolean;
}

export interface Ladder {
  /** Each rung once, within the time that is left. Never rejects. */
  put(entry: HandedDown, untilMs: number): Promise<PutDown>;
  /**
   * Resolves when nothing of these messages' ordering keys lies below the primary store, as far as this process knows: at once, or when it was
   * moved up. False: it still does after `withinMs`.
   */
  keysMovedUp(messages: readonly NewMessage[], withinMs: number): Promise<boolean>;
  /** The whole text of what cannot be a message, to the ERROR log. */
  logUnkept(why: string, fields: Readonly<Record<string, unknown>>, text: string): void;
  /** Moves what waits below into the primary store. Rejects when the primary cannot be used. */
  drain(): Promise<Drained>;
  status(): LadderStatus;
  /** The primary store is not open yet, or failed when it was last used. */
  readonly away: boolean;
  /** What waits in the journal and in memory of this process, to be worked on while no store can be asked (DF-12). */
  readonly below: WorkStore;
  /** The store that has what was put on this rung. */
  storeOf(rung: RungName): WorkStore;
  /** One last drain, as far as the time allows. The stores and the journal stay open: the code that opened them closes them. */
  close(withinMs?: number): Promise<void>;
}
