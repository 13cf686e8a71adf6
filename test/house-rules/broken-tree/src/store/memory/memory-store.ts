/** An engine that leans on its sibling. */
import { pool } from "../postgres/pool.ts";

export const memory = pool;
