/** Reaches an engine past its door. */
import { pool } from "../store/postgres/pool.ts";

export const routes = pool;
