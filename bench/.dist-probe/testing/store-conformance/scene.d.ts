import type { ClaimedMessage, NewMessage } from "../../message/message.ts";
import type { Settlement } from "../../message/settlement.ts";
import type { Lane, SettleResult, Store } from "../../store/store.ts";
import type { StoreHarness } from "./harness.ts";
export interface ClaimOptions {
    readonly store?: Store;
    readonly owner?: string;
    readonly leaseMs?: number;
    readonly limit?: number;
    readonly bytesMax?: number;
    /** Which lanes to name; absent: all that the store lists. */
    readonly lanes?: (lane: Lane) => boolean;
}
export interface Scene {
    readonly harness: StoreHarness;
    readonly store: Store;
    /** `count` ways to the same data, alternating between two instances where the store allows it. */
    instances(count: number): Promise<Store[]>;
    /** Closes the store as a crash would; what comes back is the same data opened again. */
    reopen(): Promise<Store>;
    at(ms: number): {
        readonly now: Date;
    };
    id(): string;
    message(fields?: Partial<NewMessage>): NewMessage;
    /** Enqueues one message for each, at `ms`, and returns their ids. */
    accept(ms: number, ...fields: Partial<NewMessage>[]): Promise<string[]>;
    /** One claim over all lanes. */
    claim(ms: number, options?: ClaimOptions): Promise<ClaimedMessage[]>;
    /** Claims until there are `count`, and they must come. */
    take(count: number, ms: number, options?: ClaimOptions): Promise<ClaimedMessage[]>;
    takeOne(ms: number, options?: ClaimOptions): Promise<ClaimedMessage>;
    /** Nothing may be claimed. */
    nothing(ms: number, options?: ClaimOptions): Promise<void>;
    settle(ms: number, messages: readonly ClaimedMessage[], settlement: Settlement, store?: Store): Promise<SettleResult[]>;
    /** Settles, and every settle must count. */
    settled(ms: number, messages: readonly ClaimedMessage[], settlement: Settlement): Promise<void>;
}
/** Plays one case on a fresh store and closes every instance afterwards. */
export declare function play(harness: StoreHarness, run: (scene: Scene) => Promise<void>): Promise<void>;
/** The same settlement for each of these, under the claims they carry. */
export declare function settles(messages: readonly ClaimedMessage[], settlement: Settlement): {
    id: string;
    claim: import("../../message/message.ts").Claim;
    attempt: number;
    durationMs: number;
    settlement: Settlement;
}[];
