/** A connection inside a transaction as rooms with tables of their own know it: rows as arrays of text. */
import type { Row, Run } from "../home.ts";
import type { Queryable } from "./connection.ts";

const asText = { getTypeParser: () => (value: unknown) => value };

/** `direct`: no pooler stands between, so statements may be prepared under their names. */
export function runOf(client: Queryable, direct = false): Run {
  const typed = client as unknown as { query(config: object): Promise<{ rows: Row[] }> };
  return async (text, values = [], { patienceMs, name } = {}) => {
    const how = { ...(patienceMs ? { query_timeout: patienceMs } : {}), ...(name && direct ? { name } : {}) };
    return (await typed.query({ text, values, rowMode: "array", types: asText, ...how })).rows;
  };
}
