/**
 * Claims: taking due messages under one lease, pushing its end out, and taking over leases that ran out. The token is the
 * fence; expiry only allows the takeover, so a late holder whom nobody replaced may still extend and settle.
 */
import type { Claim, ClaimedMessage } from "../../message/message.ts";
import type { At, ClaimRequest } from "../store.ts";
import { type Lease, type State } from "./state.ts";
export declare function claim(state: State, request: ClaimRequest): ClaimedMessage[];
export declare function extend(state: State, claims: readonly Claim[], leaseMs: number, at?: At): ("extended" | "lost")[];
export declare function reclaim(state: State, request: {
    readonly owner: string;
    readonly leaseMs: number;
    readonly limit: number;
} & At): ClaimedMessage[];
/** The lease of a claim, if its token is still the one that counts (I4). */
export declare function liveLease(state: State, held: Claim): Lease | undefined;
