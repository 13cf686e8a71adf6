/** The adapters' door. */
export { fromKnex } from "./knex.ts";
