/** A store with something to do for every job, and what each of them must have come to, whatever happened to it meanwhile. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createUsage, createUsagePublishers, usageTopic } from "../../src/presets/index.ts";
import { createPostgresUsageStore } from "../../src/store/postgres/index.ts";
import { newMessage } from "../../src/testing/store-conformance/fixtures.ts";
import { databaseUrl } from "../support/postgres.ts";
import { CHARGE, DAY, ids, provenanceRows, type RetentionScene, retentionScene, settledLongAgo, writeAudit } from "./scene.ts";

export interface Expected {
  /** What the job changes, in one row; the same in every world. */
  readonly see: string;
  /** What happens before it. */
  readonly before?: string;
  /** Why there is nothing to see of it. */
  readonly nothing?: string;
  /** What time does between a kill and the next run: leases of the dead run out. */
  readonly later?: string;
}

const archived = (name: string) => `(select coalesce(sum(rows), 0) from archive_chunk where class = '${name}')`;
const retired = (table: string, name = table): Expected => ({
  see: `select (select count(*) from ${table}) as here, ${archived(name)} as archived`,
});

/** Every job of the scheduler: one that is missing here fails the test. */
export const EXPECTED: Readonly<Record<string, Expected>> = {
  "reclaim-expired": {
    see: "select (select count(*) from lease) as leases, (select count(*) from attempt where outcome not in (1, 2)) as lost, (select count(*) from ready) as ready",
    later: "update lease set until = now() - interval '1 s'",
  },
  "prune-settled": {
    see: `select (select string_agg(key, ',' order by key) from (select key from message union all select key from message_kept) m where key like '% %') as keys, ${archived("dead")} as dead`,
  },
  "prune-audit": {
    see: `select (select count(*) from audit_event) as events, ${archived("audit")} as archived,
      (select count(*) from pg_class where relname ~ '^audit_record_.*(leaving)$' and relnamespace = current_schema()::regnamespace) as leaving`,
  },
  "seal-evidence": {
    before: "insert into provenance (message_id, actor, action) values ('00000000-0000-4000-8000-000000000000', 'ann', 'note')",
    see: `select count(*) as unsealed from provenance p where p.action = 'note' and not exists (
      select from evidence_leaf l join evidence_block b on l.pos between b.first_pos and b.last_pos where l.id = p.id and l.at = p.at)`,
  },
  "retire-occurrences": retired("recovery_occurrence", "occurrences"),
  "retire-redrive-items": retired("redrive_item", "redrive_items"),
  "retire-provenance": retired("provenance"),
  "retire-recovery-provenance": retired("recovery_provenance"),
  "retire-replays": retired("message_origin", "replays"),
  "retire-usage-turns": {
    see: `select (select count(*) from chat_turns) as turns, (select count(*) from quota_usage) as quotas, ${archived("usage_turns")} as archived`,
  },
  "clean-locks": { see: "select count(*) as old from leader where name like 'old %'" },
  "ship-archive": { see: "select count(*) filter (where body is not null) as here, sum(rows) as rows from archive_chunk" },
  "watch-bloat": { see: "select 1", nothing: "it only looks" },
  verify: { see: "select accepted_n, pass > 0 as passed from conservation" },
  recovery_ingest: {
    see: "select (select count(*) from recovery_occurrence where message_id is not null) as counted, (select sum(occurrences) from recovery_group where topic = 'shop/charge') as sum",
  },
  recovery_failing: { see: "select 1", nothing: "it hands in what this process saw fail" },
  recovery_tidy: { see: "select 1", nothing: "it looks at what this process took in" },
  recovery_completion: {
    see: `select (select count(*) from recovery_candidate where execution_status = 'unknown') as unknown,
      (select count(*) from recovery_provenance where candidate_id = 1 and at > now() - interval '1 hour') as lines`,
  },
  recovery_reopen: {
    see: "select count(*) as rounds from recovery_candidate",
    nothing: "no execution ended with dead letters left",
  },
  redrives: {
    see: "select (select count(*) from redrive_item where state = 1) as sent, (select count(*) from dead_letter where resolution = 3) as replayed",
    later: "update redrive set lease_until = now() - interval '1 s' where lease_until is not null",
  },
  redrives_tidy: {
    see: `select (select count(*) from redrive where status = 'cancelled') as cancelled,
      (select count(*) from recovery_provenance where event ~ 'cancelled') as lines`,
  },
  recovery_counts: {
    see: "select (select count(*) from recovery_open) as changes, (select sum(open) from recovery_group) as open, (select count(*) from recovery_tally) <= 20 as few",
  },
};

const OLD = "statement_timestamp() - interval '365 days'";

async function recoveryRows({ sql }: RetentionScene): Promise<void> {
  await sql(`insert into recovery_group (fingerprint, match_id, topic, sink, code, template, first_at, last_at, reports_closed)
    select 'f' || g, 'm' || g, 'a/b', 'http', 'X', 't', ${OLD}, ${OLD}, 100 from generate_series(1, 2) g`);
  await sql(
    `insert into recovery_occurrence (group_id, at, hash, source, code, text) select 1, ${OLD}, gen_random_uuid(), 'api', 'X', 'x' from generate_series(1, 12)`,
  );
  const redrive = (id: string, status: string) =>
    sql(
      `insert into redrive (id, request_hash, status, mode, actor, reason, selection, plan, created_at, ended_at)
        values ($1, 'h', $2, 'replay', 'ann', 'r', '{}', '{}', ${OLD}, case when $2 = 'done' then ${OLD} end)`,
      [id, status],
    );
  await redrive("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "done");
  await redrive("017f22e2-79b0-7cc3-98c4-dc0c0c073990", "planned");
  await sql(`insert into redrive_item (redrive_id, n, message_id, generation, revision, state, sent_at, ended_at)
    select '017f22e2-79b0-7cc3-98c4-dc0c0c07398f', g, gen_random_uuid(), 0, 1, 2, ${OLD}, ${OLD} from generate_series(1, 12) g`);
  await sql(
    `insert into recovery_provenance (at, event, actor, actor_type) select ${OLD}, 'note', 'ann', 'human' from generate_series(1, 12)`,
  );
  await sql(`insert into message_origin (message_id, replay_of, edited)
    select ('017f22e2-79b0-7cc3-98c4-dc0c0c0739' || lpad(g::text, 2, '0'))::uuid, gen_random_uuid(), false from generate_series(1, 12) g`);
  await sql(`insert into recovery_candidate (group_id, round, created_at, updated_at, group_version, execution_status, execution_id, lease_until)
    values (2, 1, now(), now(), 1, 'executing', 'e', now() - interval '1 minute')`);
}

export async function createWorld(): Promise<RetentionScene> {
  const usages = usageTopic({ publishers: createUsagePublishers({ ledger: { publishUsage: () => {} } }) });
  const archive = `file:${await mkdtemp(join(tmpdir(), "makegood-world-"))}`;
  const kept = { keptMs: DAY, auditKeptMs: 30 * DAY, retention: { dead: DAY } };
  const scene = await retentionScene({ ...kept, archive, topics: [CHARGE, usages] });
  const { mg, sql } = scene;
  await settledLongAgo(mg, ["delivered", "delivered", "resolved", "resolved", "open", "open"]);
  for (const id of ["a", "b", "c"]) await writeAudit(mg, id, 100);
  await provenanceRows(scene, 12, 91);
  await recoveryRows(scene);
  await sql(
    "insert into leader (name, owner, until) select 'old ' || g, 'x', now() - interval '2 days' from generate_series(1, 12) g",
  );
  const usage = await createUsage({
    mg,
    topic: usages,
    store: createPostgresUsageStore({ url: databaseUrl(), schema: scene.schema }),
  });
  const turn = {
    tenantId: ids(),
    turnId: ids(),
    requestId: ids(),
    chatId: ids(),
    period: "2024-01",
    buckets: [{ name: "total" }],
  };
  const sizes = { estimatedInputTokens: 1, outputTokensMax: 1, generationFloorTokens: 1, inputRate: 1, outputRate: 1 };
  await usage.reserve({ ...turn, ...sizes, policyVersion: "1", model: "m" });
  await usage.finalize({ ...turn, outcome: "aborted" });
  await usage.close();
  await sql(
    "set session_replication_role = replica; update chat_turns set message_id = gen_random_uuid(), finalized_at = finalized_at - interval '500 days'",
  );
  const [open] = (await mg.store.list({ status: "dead", resolution: "open", limit: 1 })).data;
  await mg.recovery?.startRedrive({ select: { ids: [open?.id ?? ""] }, reason: "again" }, { actor: "ann", actorType: "human" });
  const lost = [0, 1].map((n) => newMessage(ids(), { topic: CHARGE.name, key: `lost ${n}` }));
  await mg.store.enqueue(lost);
  await mg.store.claim({ owner: "dead", leaseMs: 1, lanes: [], ids: lost.map(({ id }) => id) });
  return scene;
}
