import { type Clock } from "../../platform/clock.ts";
import { type Random } from "../../platform/random.ts";
import type { Store } from "../store.ts";
export interface MemoryStoreOptions {
    readonly clock?: Clock | undefined;
    readonly random?: Random | undefined;
}
export declare function createMemoryStore(options?: MemoryStoreOptions): Store;
