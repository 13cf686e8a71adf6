/** Every route by its name, and the types that follow from them for handlers and callers. */
import { z } from "zod";
import { ADDRESSES, type RouteId } from "./addresses.ts";
import { AUDIT_ROUTES } from "./audit.ts";
import { MESSAGE_ROUTES } from "./messages.ts";
import { OPERATION_ROUTES } from "./operations.ts";
import { CANDIDATE_ROUTES } from "./recovery/candidates.ts";
import { GROUP_ROUTES } from "./recovery/groups.ts";
import { REDRIVE_ROUTES } from "./recovery/redrives.ts";
import { type Route, route, routes } from "./route.ts";
import { STREAM_ROUTES } from "./streams.ts";
import { TOPIC_ROUTES } from "./topics.ts";
import { VERIFY_ROUTES } from "./verify.ts";

const TEXT = { type: "text/plain" };
const HTML = { type: "text/html" };
const verbose = z.looseObject({ verbose: z.string().optional().describe("say what was checked") });
const health = z.looseObject({ status: z.string() });

const PROBE_ROUTES = routes({
  showPage: route("read", "The page", HTML),
  live: route("open", "Whether the process runs", TEXT),
  ready: route("open", "Whether a message would be accepted now", TEXT, { query: verbose, errors: ["not_ready"] }),
  health: route("read", "How everything stands, from the last known state and with its age", { 200: health, 503: health }),
  metrics: route("read", "The numbers, for Prometheus", TEXT),
  readDocs: route("read", "This contract, to be read by people", HTML),
  openApi: route("read", "This contract as OpenAPI 3.1", z.looseObject({ openapi: z.string() })),
});

// Named parts: without them the declarations of the package repeat every schema here.
export const ROUTES: typeof PROBE_ROUTES &
  typeof TOPIC_ROUTES &
  typeof MESSAGE_ROUTES &
  typeof AUDIT_ROUTES &
  typeof OPERATION_ROUTES &
  typeof STREAM_ROUTES &
  typeof GROUP_ROUTES &
  typeof CANDIDATE_ROUTES &
  typeof REDRIVE_ROUTES &
  typeof VERIFY_ROUTES = {
  ...PROBE_ROUTES,
  ...TOPIC_ROUTES,
  ...MESSAGE_ROUTES,
  ...AUDIT_ROUTES,
  ...OPERATION_ROUTES,
  ...STREAM_ROUTES,
  ...GROUP_ROUTES,
  ...CANDIDATE_ROUTES,
  ...REDRIVE_ROUTES,
  ...VERIFY_ROUTES,
} satisfies Record<RouteId, Route>;

type Routes = typeof ROUTES;

export type QueryOf<Id extends RouteId> = Routes[Id] extends { readonly query: infer Q extends z.ZodType } ? z.output<Q> : object;

/** An exact body is its text: the handler cuts the payload out of it. */
export type BodyOf<Id extends RouteId> = Routes[Id] extends { readonly body: { readonly exact: true } }
  ? string
  : Routes[Id] extends { readonly body: { readonly schema: infer S extends z.ZodType } }
    ? z.output<S>
    : undefined;

type Answers<Id extends RouteId> = Routes[Id]["answers"][keyof Routes[Id]["answers"]];
export type AnswerOf<Id extends RouteId> = Answers<Id> extends infer A ? (A extends z.ZodType ? z.output<A> : string) : never;

type Names<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;
export type ParamsOf<Id extends RouteId> = Readonly<Record<Names<(typeof ADDRESSES)[Id][1]>, string>>;

type Asked<R> = R extends { readonly query: infer Q extends z.ZodType } ? z.input<Q> : object;
type Sent<R> = R extends { readonly body: { readonly schema: infer S extends z.ZodType } } ? z.input<S> : object;
export type InputOf<Id extends RouteId> = Readonly<Record<keyof ParamsOf<Id>, string | number>> &
  Asked<Routes[Id]> &
  Sent<Routes[Id]>;

export const routeIds = Object.keys(ADDRESSES) as RouteId[];
