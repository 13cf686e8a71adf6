/**
 * CHECK: whether an enqueue would be accepted now, in one question to the server: our schema is there and of this version, the
 * session may write, this user may insert. What it says about durability comes with the same answer.
 */
import { MakegoodError } from "../../message/errors.ts";
import { createIds } from "../../platform/ids.ts";
import { systemRandom } from "../../platform/random.ts";
import type { Checked, StoreTraits } from "../store.ts";
import type { Row } from "./connection.ts";
import type { Db } from "./db.ts";
import { MIGRATIONS } from "./migrations/list.ts";

/** A server that has not answered by then is given up, so that questions do not pile up on our connections. */
const PATIENCE_MS = 5_000;
/** Larger than the free space of a page: it needs room on the disk, as a message does. */
const PROBE_BYTES = 6_000;

/** What an enqueue may need, whether it has a key, an order or a tenant that is new. */
const RIGHTS = { insert: ["message", "ready", "ready_ordered", "dedupe", "lane"], select: ["lane", "topic", "dedupe"] } as const;
const missingRights = (s: string): string => {
  const asked = Object.entries(RIGHTS).flatMap(([right, tables]) => tables.map((table) => `('${right}', '${table}')`));
  return `(select string_agg(x.what || ' on ' || x.place, ', ') from (values ${asked.join(", ")}) x(what, place)
      where not has_table_privilege('${s}.' || x.place, x.what))`;
};

const WHAT = "the schema was made anew under this process: what was accepted before is gone, or in another database";

export interface PostgresCheck {
  /** Throws what an enqueue would be refused with; answers with what accepted messages survive, and whether it is still the same data. */
  ask(): Promise<Checked & Pick<StoreTraits, "survives">>;
  /** Writes as an enqueue does, and takes it back. */
  write(): Promise<void>;
}

export function createCheck({ connection, s, clock }: Db): PostgresCheck {
  const newest = Math.max(...MIGRATIONS.map(({ version }) => version));
  const text = `select current_setting('transaction_read_only'), current_setting('fsync'), current_setting('synchronous_commit'),
      current_setting('full_page_writes'), ${missingRights(s)},
      (select count(*) from ${s}.migration where version <= $1)::text, (select id::text from ${s}.installation limit 1)`;
  const ids = createIds(clock);
  let installation: string | null = null;
  let lost: Checked["lost"] = null;
  return {
    async ask() {
      const [row = []] = await connection.rows("check", text, [newest], { reads: true, patienceMs: PATIENCE_MS });
      const [readOnly, , , , lacking, applied, installed = null] = row;
      // A newer schema is made to be safe beside us; an older one is not.
      const missing = MIGRATIONS.length - Number(applied);
      if (missing > 0) {
        throw new MakegoodError("schema_outdated", `the database misses ${missing} migration(s): run \`makegood migrate up\``);
      }
      if (readOnly === "on") {
        throw unusable("the server is read-only (a standby, or default_transaction_read_only): connect to the primary");
      }
      if (lacking) throw unusable(`this user lacks rights in schema ${s}: grant it ${lacking}`);
      if (installation !== null && installed !== installation) lost = { atMs: clock.wallMs(), what: WHAT };
      installation = installed;
      return { survives: survivesOf(row), lost };
    },
    async write() {
      const [payload, id] = [Buffer.from(systemRandom.bytes(PROBE_BYTES)).toString("base64"), ids()];
      await connection.transaction("write probe", async (client) => {
        await client.query(`insert into ${s}.message (id, lane_id, payload) values ($1, 0, $2)`, [id, payload]);
        await client.query(`insert into ${s}.ready (due, id, lane_id) values ('infinity', $1, 0)`, [id]);
        await client.query(
          `insert into ${s}.ready_ordered (due, id, lane_id, ordering_key, seq, behind) values ('infinity', $1, 0, '', 0, true)`,
          [id],
        );
        await client.query(
          `insert into ${s}.dedupe (topic_id, tenant, key, id, hash) values (0, '', $1::text, $1::uuid, $1::uuid)`,
          [id],
        );
        await client.query("rollback");
      });
    },
  };
}

const unusable = (what: string): MakegoodError => new MakegoodError("store_unavailable", what);

function survivesOf([, fsync, commit, pages]: Row): StoreTraits["survives"] {
  return fsync === "on" && commit !== "off" && pages === "on" ? "power-loss" : "process-crash";
}
