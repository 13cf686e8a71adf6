/** The engine's door. */
export { pool } from "./pool.ts";
