/** Types of find-pgbouncer.mjs, which the test command uses too and Node 20 must be able to run. */
export function findPgBouncer(): Promise<string>;
