/** A room that knows its sibling and an engine. */
import { engine } from "../recovery/engine.ts";
import { pool } from "../store/postgres/index.ts";

export const client = async (): Promise<unknown> => [engine, pool, await import("../server/routes.ts")];
