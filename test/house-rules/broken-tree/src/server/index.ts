/** A door that reaches another door, which is allowed. */
export { pool } from "../store/postgres/index.ts";
export { routes } from "./routes.ts";
