// What every peer on PostgreSQL needs: a pool that survives the end of a run, and a vacuum of all tables of its schema.
import pg from "pg";

export function makePool(url, max, options = {}) {
  const pool = new pg.Pool({ connectionString: url, max, ...options });
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

export async function vacuumSchema(pool, schema) {
  const { rows } = await pool.query(
    `select format('%I.%I', n.nspname, c.relname) as name
     from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind = 'r'`,
    [schema],
  );
  for (const { name } of rows) await pool.query(`vacuum analyze ${name}`);
}
