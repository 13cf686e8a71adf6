import type { Accepted, NewMessage } from "../../message/message.ts";
import type { EnqueueOptions } from "../store.ts";
import { type State } from "./state.ts";
export declare function enqueue(state: State, messages: readonly NewMessage[], options?: EnqueueOptions): Accepted[];
/** Where a key is unique: within its topic and tenant, no tenant being a scope of its own. */
export declare function dedupeScope({ topic, tenantId, key }: NewMessage): string | null;
