import type { Settle } from "../../message/settlement.ts";
import type { At, SettleResult } from "../store.ts";
import { type State } from "./state.ts";
export declare function settle(state: State, settles: readonly Settle[], at?: At): SettleResult[];
