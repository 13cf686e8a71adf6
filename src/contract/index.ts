/** The door `makegood/client`: the API as typed functions over `fetch`, for services, scripts and pages. */
export type { RouteId } from "./addresses.ts";
export type { Fault } from "./faults.ts";
export { ApiError, type CallOptions, type Client, type ClientOptions, createClient, type RawAnswer } from "./http-client.ts";
export type { AnswerOf, InputOf } from "./table.ts";
