/** A sink that touches a store. */
import type { Store } from "../store/store.ts";
import { send } from "./send.ts";

export const http = (store: Store): unknown => [store, send];
