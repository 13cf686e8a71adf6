import type { Accepted, NewMessage } from "../message/message.ts";
import type { Events } from "../observe/events.ts";
import { type Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { Store, Transaction } from "../store/store.ts";
export interface AcceptanceOptions {
    readonly store: Store;
    readonly clock: Clock;
    readonly random: Random;
    readonly events: Events;
}
/** `accepted` also when an earlier try of the same call turned out to have been committed. */
export interface Acceptance {
    /** All of them or none, in one transaction. */
    acceptAll(messages: readonly NewMessage[], tx?: Transaction, signal?: AbortSignal): Promise<Accepted[]>;
    /** One message, in the company of whoever calls at the same time. */
    acceptOne(message: NewMessage, signal?: AbortSignal): Promise<Accepted>;
    /** Resolves when nothing is under way; afterwards everything is refused as `closed`. */
    close(): Promise<void>;
}
export declare function createAcceptance({ store, clock, random, events }: AcceptanceOptions): Acceptance;
