import type { AttemptRecord, MessageView, ProvenanceRecord } from "../../message/message.ts";
import type { ListFilter, Page, StatusCount } from "../store.ts";
import { type State, type Stored } from "./state.ts";
export declare function view(stored: Stored): MessageView;
export declare function list(state: State, filter: ListFilter): Page;
export declare function counts(state: State): StatusCount[];
export declare function history(state: State, id: string): {
    attempts: AttemptRecord[];
    provenance: ProvenanceRecord[];
};
