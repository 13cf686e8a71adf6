/**
 * What people and programs do to a message that is not in flight: replay, resolve, discard. Fenced by revision, and the
 * provenance record is part of the same write.
 */
import type { Intervention, InterventionResult } from "../store.ts";
import { type State } from "./state.ts";
export declare function intervene(state: State, intervention: Intervention): InterventionResult;
