/**
 * What an address is: what it takes, what it answers, how it refuses, who may use it. Handlers get what was read by it, OpenAPI and the
 * client are made from it; nothing of it is written a second time.
 */
import type { z } from "zod";
import type { RouteId } from "./addresses.ts";
import type { ProblemCode } from "./problem-codes.ts";

/**
 * Who may use an address: `open` anyone, also without a token; `read` looks; `accept` brings messages and records in; `operate` steers what
 * is there; `decide` approves and executes; `configure` changes what topics, rules and actions are.
 */
export type Permission = "open" | "read" | "accept" | "operate" | "decide" | "configure";

export type RequestHeader = "if-match" | "idempotency-key" | "x-actor-type";

export interface Body {
  readonly schema: z.ZodType;
  /** A number, or what follows from how large a payload may be. */
  readonly bytesMax: number | ((payloadBytesMax: number) => number);
  /** Nothing at all is the empty object. */
  readonly optional?: boolean;
  /** The handler reads the text itself, because a payload in it keeps its exact bytes; the schema says what it takes. */
  readonly exact?: boolean;
  /** The code of a body that does not fit. */
  readonly invalid: ProblemCode;
}

/** A JSON body by its schema, another media type, or no body at all. */
export type AnswerBody = z.ZodType | { readonly type: string } | null;

export interface Route {
  readonly summary: string;
  readonly permission: Permission;
  readonly query?: z.ZodObject;
  readonly body?: Body;
  readonly headers?: readonly RequestHeader[];
  readonly answers: Readonly<Record<number, AnswerBody>>;
  /** Beside those that every address has. */
  readonly errors: readonly ProblemCode[];
}

/** Some of the routes; TypeScript keeps each one's own schemas. */
export const routes = <const R extends Partial<Record<RouteId, Route>>>(some: R): R => some;
