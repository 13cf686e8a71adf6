/**
 * What a room with tables of its own is given by the PostgreSQL store: reads, and transactions in which it writes its own tables,
 * enqueues messages and intervenes in dead letters. How a message is written stays the store's.
 */
import type { Accepted, MessageView, NewMessage } from "../message/message.ts";
import type { Fence } from "../platform/job.ts";
import type { At, Intervention, InterventionResult, Store } from "./store.ts";

/** Everything comes back as text. */
export type Row = readonly (string | null)[];

export interface How {
  /** A limit of its own instead of the connection's. */
  readonly patienceMs?: number | undefined;
  /** Prepared under this name where the connection is direct: for long statements whose text never changes. */
  readonly name?: string | undefined;
}

/** One statement. */
export type Run = (text: string, values?: unknown[], how?: How) => Promise<Row[]>;

/** A message and the revision that it must still have; absent: any. */
export interface Named {
  readonly id: string;
  readonly revision?: number | undefined;
}

/** One transaction; tried again as a whole after a short conflict. */
export interface Inside {
  readonly run: Run;
  /** Each is accepted, or a repeat of one that was; a conflict undoes the whole write. */
  enqueue(messages: readonly NewMessage[], at: At): Promise<void>;
  /** As `enqueue`, but says what became of each; with one conflict nothing of the call is written. */
  tryEnqueue(messages: readonly NewMessage[], at: At): Promise<Accepted[]>;
  /** Those that still stand as named; each leaves its line of provenance. reopen: what was resolved or discarded. */
  intervene(
    action: "replay" | "resolve" | "discard" | "reopen",
    named: readonly Named[],
    by: { readonly actor: string; readonly reason: string | null },
    at: At,
  ): Promise<void>;
}

export interface Home {
  /** The schema of the tables, quoted. */
  readonly s: string;
  read(during: string): Run;
  /** A single statement that writes. */
  write(during: string): Run;
  /** `under`: refused at commit, with all that it wrote, once that leadership has ended. */
  transaction<T>(during: string, work: (inside: Inside) => Promise<T>, under?: Fence | null): Promise<T>;
  messages(run: Run, ids: readonly string[]): Promise<MessageView[]>;
  /** As the store's own, in one transaction with what goes first, once the dead letter's row was taken; what that throws undoes it. */
  intervene(intervention: Intervention, first: (run: Run) => Promise<void>): Promise<InterventionResult>;
}

/** A store that gives such rooms a place. */
export interface WithHome {
  readonly home: Home;
}

/** Null where it gives none and the endpoints answer `needs_postgres`. */
export function homeOf(store: Store): Home | null {
  return (store as Store & Partial<WithHome>).home ?? null;
}
