/** The list of the kinds of sinks. */
import { http } from "./http.ts";

export const KINDS = { http, other: "webhook" === "notify" };
export type DeclaredSink = { kind: string; text: string };
