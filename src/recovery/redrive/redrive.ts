/** The records of redrives (durable operations over frozen lists of messages), and what is told of them. */
import { withNames } from "../../message/json.ts";
import type { Events } from "../../observe/events.ts";
import type { Row, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { columns, int, intOrNull, moment, momentOrNull, text, textOrNull } from "../columns.ts";
import { line, type NewProvenance } from "../provenance.ts";
import type { RedriveRecords } from "../records.ts";
import type { Actor } from "../recovery.ts";
import type { RedriveRequest } from "./request.ts";

/**
 * replay: the same message, same key, next generation. new_key: a new message under a new key, the old one resolved. copy: a message to
 * another topic carries the effect; once that is delivered, the old one is resolved. resolve, discard: ended with the reason. reopen: what
 * another redrive resolved or discarded is open again. watch: nothing is done to it, only what becomes of it is recorded.
 */
export type RedriveMode = "replay" | "new_key" | "copy" | "resolve" | "discard" | "reopen" | "watch";

/** Whether a mode sends something to a receiver; the others are done at once. */
export const sends = (mode: RedriveMode): boolean => mode === "replay" || mode === "new_key" || mode === "copy";

/** planned: frozen and shown (dry run), waits for a person. stopped: by itself, because too much failed. */
export const REDRIVE_STATUSES = ["planned", "running", "paused", "stopped", "cancelled", "done"] as const;
export type RedriveStatus = (typeof REDRIVE_STATUSES)[number];

/** waiting → sent → healed | failed; waiting → skipped; what was only watched: sent → skipped. A row has the number of its place here. */
export const ITEM_STATES = ["waiting", "sent", "healed", "failed", "skipped"] as const;
export type ItemState = (typeof ITEM_STATES)[number];

/** inconclusive: its receiver went down meanwhile; judged anew once that is back. */
export const VERDICTS = ["healed", "failed", "inconclusive"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Why an item was left alone. */
export const SKIPPED = {
  generationCap: "generation_cap",
  cancelled: "cancelled",
  /** Not an open dead letter any more, or another revision. */
  movedOn: "moved_on",
  gone: "gone",
  keyConflict: "key_conflict",
  /** A copy of it is on its way to another receiver: sent as well, both would get it. */
  carried: "carried",
  /** For a person, with its group. */
  held: "held",
  /** Of what waits: its group was judged. */
  groupFailed: "group_failed",
} as const;

/** Open dead letters that fit all members given. */
export interface RedriveSelect extends Readonly<Omit<RedriveRequest["select"], "limit">> {
  readonly limit: number;
  /** What was replayed so often is listed as skipped. */
  readonly generationMax: number;
  /** For mode copy: an earlier copy that died in this generation or above is not tried again but skipped. */
  readonly copyGenerationMax?: number | undefined;
}

/** In rows, hashes and the record a selection has the names it began with, so that what was written then means the same now. */
export function writtenSelect(select: object): Record<string, unknown> {
  return withNames(select, { errorCode: "code" });
}

/** What is kept once the list is frozen: ids stand in the list, and only their number stays here. */
export function keptSelect({ ids, ...rest }: RedriveSelect): Record<string, unknown> {
  return writtenSelect(ids === undefined ? rest : { ...rest, idsGiven: ids.length });
}

export function readSelect(kept: string | null) {
  const dated = (name: string, value: unknown) => (name === "since" || name === "until" ? new Date(String(value)) : value);
  const read = withNames(JSON.parse(kept ?? "{}", dated) as object, { code: "errorCode" });
  return read as unknown as Omit<RedriveSelect, "ids"> & { readonly idsGiven?: number };
}

const counted = (row: string) => ({
  waiting: int(`${row}.waiting`),
  /** And it is not known yet what became of it. */
  sent: int(`${row}.sent`),
  healed: int(`${row}.healed`),
  failed: int(`${row}.failed`),
  skipped: int(`${row}.skipped`),
});

/** Of `redrive r`. */
export const COUNTS = columns({ selected: int("r.selected"), ...counted("r") });
export type RedriveCounts = ReturnType<typeof COUNTS.of>;

const WITHOUT_COUNTS = columns({
  redriveId: text("r.id::text"),
  idempotencyKey: textOrNull("r.request_key"),
  status: text<RedriveStatus>("r.status"),
  statusReason: textOrNull("r.status_reason"),
  mode: text<RedriveMode>("r.mode"),
  action: textOrNull("r.action"),
  candidateId: intOrNull("r.candidate_id"),
  actor: text("r.actor"),
  reason: text("r.reason"),
  select: { sql: "r.selection", read: readSelect },
  plan: text("r.plan"),
  version: int("r.version"),
  /** The runner's own between steps (ramp, rate), JSON text. */
  state: textOrNull("r.state"),
  createdAt: moment("r.created_at"),
  startedAt: momentOrNull("r.started_at"),
  endedAt: momentOrNull("r.ended_at"),
  /** The process that carries it out now; null: none does. */
  runner: textOrNull("case when r.token is not null and r.lease_until > statement_timestamp() then r.owner end"),
});

export const REDRIVE = {
  list: `${COUNTS.list}, ${WITHOUT_COUNTS.list}`,
  of: (row: Row) => ({ ...WITHOUT_COUNTS.from(6, row), counts: COUNTS.of(row) }),
};
export type Redrive = ReturnType<typeof REDRIVE.of>;

type Given = "redriveId" | "idempotencyKey" | "mode" | "action" | "candidateId" | "actor" | "reason" | "plan";

/** Pressing twice is one redrive: the same key (or the same id) gives the first one back. */
export interface NewRedrive extends Pick<Redrive, Given> {
  readonly requestHash: string;
  readonly status: "planned" | "running";
  /** What a person said was repaired before. */
  readonly repair?: string | null | undefined;
  readonly select: RedriveSelect;
  /** The candidate must still be executing under this, gets this redrive, and needs no lease from then on. */
  readonly executionId?: string | undefined;
  readonly provenance: readonly NewProvenance[];
}

/** Of `redrive_group g`: the messages of one group in one topic, judged by themselves. */
export const REDRIVE_GROUP = columns({
  no: int("g.no"),
  selected: int("g.waiting + g.sent + g.healed + g.failed + g.skipped"),
  ...counted("g"),
  /** Null: not ingested yet; then they are of one code. */
  groupId: intOrNull("g.group_id"),
  topic: text("g.topic"),
  errorCode: textOrNull("g.code"),
  verdict: textOrNull<Verdict>("g.verdict"),
  reason: textOrNull("g.reason"),
  /** How many are still to be sent before it is judged, and what was known when that began. */
  canary: int("g.canary"),
  baseHealed: int("g.base_healed"),
  baseFailed: int("g.base_failed"),
});
export type RedriveGroup = ReturnType<typeof REDRIVE_GROUP.of>;

export type RedrivePreview = Awaited<ReturnType<RedriveRecords["preview"]>>;

/** A list of a million is frozen or cancelled in one statement. */
export const LIST_MS_MAX = 10 * 60_000;

/** Of `redrive r`. */
export async function readRedrive(s: string, run: Run, where: string, values: unknown[]): Promise<Redrive | null> {
  const [row] = await run(`select ${REDRIVE.list} from ${s}.redrive r where ${where}`, values);
  return row ? REDRIVE.of(row) : null;
}

/** Takes the redrive's row, if the token is current: no other call pauses, cancels or claims it until this write is done. */
export function takeUnder(s: string, run: Run, id: string, token: string): Promise<Redrive | null> {
  return readRedrive(s, run, "r.id = $1::uuid and r.token::text = $2 for no key update", [id, token]);
}

const addSql = (s: string, from: ItemState) => {
  const each = (sql: (state: ItemState) => string) => ITEM_STATES.map(sql).join(", ");
  const gone = (state: ItemState) => (state === from ? "- count(*)" : "");
  return `with d as materialized (select no, ${each((state) => `count(*) filter (where became = '${state}') ${gone(state)} as ${state}`)}
      from unnest($2::int[], $3::text[]) m(no, became) group by no),
    g as (update ${s}.redrive_group g set ${each((state) => `${state} = g.${state} + d.${state}`)},
      canary = greatest(0, g.canary - greatest(0, d.sent)) from d where g.redrive_id = $1::uuid and g.no = d.no)
    update ${s}.redrive r set ${each((state) => `${state} = r.${state} + t.${state}`)}
    from (select ${each((state) => `coalesce(sum(${state}), 0) as ${state}`)} from d) t where r.id = $1::uuid returning ${COUNTS.list}`;
};

/** Of items that have the state `from`. $2 items, $3 their new states or null, $4 reasons, $5 carriers. */
const moveSql = (s: string, from: number, clock: string) => `update ${s}.redrive_item i
  set (state, reason, carrier_id, sent_at, looked_at, ended_at) = (
    select coalesce(x.state, i.state), coalesce(x.reason, i.reason), coalesce(x.carrier_id, i.carrier_id),
      case when x.state = 1 then ${clock} else i.sent_at end, case when i.state = 1 then ${clock} end, case when x.state > 1 then ${clock} end
    from (select ($3::smallint[])[x.at] as state, ($4::text[])[x.at] as reason, ($5::uuid[])[x.at] as carrier_id
      from (select array_position($2::int[], i.n) as at) x) x)
  where i.redrive_id = $1::uuid and i.n = any ($2::int[]) and i.state = ${from}`;

interface Moved {
  readonly n: number;
  readonly groupNo: number;
  /** Null: it was looked at, and stays what it is. */
  readonly to: ItemState | null;
  readonly reason: string | null;
  readonly carrierId?: string | null;
}

/** Marks and counts items that were `from`: what is sent before a group is judged is of its canary. Returns the redrive's counts. */
export async function moveItems(s: string, run: Run, id: string, from: ItemState, items: readonly Moved[], { now }: At) {
  const named = (what: string) => (now ? {} : { name: `mg_redrive_${what}_${from}` });
  const states = items.map(({ to }) => (to === null ? null : ITEM_STATES.indexOf(to)));
  const said = [items.map(({ n }) => n), states, items.map(({ reason }) => reason), items.map((item) => item.carrierId ?? null)];
  if (items.length > 0) await run(moveSql(s, ITEM_STATES.indexOf(from), clockSql(now)), [id, ...said], named("move"));
  const moved = items.filter(({ to }) => to !== null);
  const counted = [id, moved.map(({ groupNo }) => groupNo), moved.map(({ to }) => to)];
  const [row] = await run(addSql(s, from), counted, named("count"));
  return COUNTS.of(row as Row);
}

/** Stands in the same write as the change it tells of. */
export function redriveLine(
  event: string,
  { redriveId, select, candidateId, action }: Pick<NewRedrive | Redrive, "redriveId" | "select" | "candidateId" | "action">,
  by: Actor,
  reason: string | null,
  details?: Readonly<Record<string, unknown>>,
): NewProvenance {
  return line(`redrive_${event}`, by, { groupId: select.groupId ?? null, candidateId, redriveId, action, reason, details });
}

/** `since`: the counts of the last event of this process, so that counters of what changed add up over all processes. */
export function announce(events: Events, redrive: Redrive, since: RedriveCounts = redrive.counts): void {
  const { redriveId: id, candidateId, status, statusReason: reason, counts } = redrive;
  const ever = ({ sent, healed, failed }: RedriveCounts): number => sent + healed + failed;
  const grown = (name: "healed" | "failed" | "skipped") => Math.max(0, counts[name] - since[name]);
  // Each message once, also one whose ending is known by now.
  const sent = Math.max(0, ever(counts) - ever(since));
  const ended = { healed: grown("healed"), failed: grown("failed"), skipped: grown("skipped") };
  const changed = { selected: 0, waiting: counts.waiting - since.waiting, sent, ...ended };
  events.emit({ type: "redrive", id, candidateId, status, reason, counts, changed });
}
