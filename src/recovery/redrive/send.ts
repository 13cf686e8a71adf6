/**
 * SEND: what the mode says is done to a batch of messages, and their items say so, in one transaction under the redrive's row and token.
 * Only a dead letter that stands exactly as it was frozen is touched: no message is replayed twice for one generation.
 */
import { MakegoodError } from "../../message/errors.ts";
import { type NewMessage, RESOLUTIONS } from "../../message/message.ts";
import type { Home, Inside, Run } from "../../store/home.ts";
import type { At } from "../../store/store.ts";
import { columns, flag, int, text, textOrNull } from "../columns.ts";
import { moveItems, type Redrive, SKIPPED, sends, takeUnder } from "./redrive.ts";
import { planOf } from "./request.ts";
import { carriedAmong } from "./select-sql.ts";

export interface ToSend {
  readonly n: number;
  readonly carrier?: NewMessage | undefined;
}

/** Of `redrive_item i` and its dead letter `d`; $3: the resolutions that it may have. */
const WAITING = columns({
  n: int("i.n"),
  groupNo: int("i.group_no"),
  id: text("i.message_id::text"),
  revision: int("i.revision"),
  skipped: textOrNull(`case when d.id is null then '${SKIPPED.gone}'
    when d.resolution <> all ($3::smallint[]) or d.revision <> i.revision or d.generation <> i.generation then '${SKIPPED.movedOn}' end`),
});

interface Waiting extends Omit<ReturnType<typeof WAITING.of>, "skipped">, ToSend {
  skipped: string | null;
  carrierId: string | null;
  /** The carrier was there before, and stands for itself. */
  known: boolean;
}

/** Waiting items, and whether their dead letters stand as they were frozen; these are locked, so that no other transaction moves them on. */
const takeSql = (s: string) => `with i as materialized (
    select i.n, i.message_id, i.generation, i.revision, i.group_no from ${s}.redrive_item i
    where i.redrive_id = $1::uuid and i.n = any ($2::int[]) and i.state = 0 order by i.message_id)
  select ${WAITING.list} from i left join lateral (select d.id, d.resolution, d.generation, d.revision from ${s}.dead_letter d
    where d.id = i.message_id for no key update) d on true`;

async function take(s: string, run: Run, { redriveId, mode }: Redrive, items: readonly ToSend[]): Promise<Waiting[]> {
  const carriers = new Map(items.map(({ n, carrier }) => [n, carrier]));
  const open = mode === "reopen" ? [RESOLUTIONS.indexOf("resolved"), RESOLUTIONS.indexOf("discarded")] : [0];
  const rows = await run(takeSql(s), [redriveId, [...carriers.keys()], open], { name: "mg_redrive_take" });
  return rows.map((row) => {
    const item = WAITING.of(row);
    return { ...item, carrier: carriers.get(item.n), carrierId: null, known: false };
  });
}

/**
 * What a copy brings to another receiver is not sent as well, nor to a third one: what a fallback does, a compensation undoes. Their rows
 * are taken, so no copy of them begins meanwhile.
 */
async function leaveCarried(s: string, run: Run, { mode, plan }: Redrive, fit: readonly Waiting[]): Promise<void> {
  const ids = fit.map(({ id }) => id);
  const beside = mode === "copy" ? planOf(plan).carrier : undefined;
  const carried = new Set((await carriedAmong(s, run, ids, beside)).map(({ messageId }) => messageId));
  for (const item of fit) if (carried.has(item.id)) item.skipped = SKIPPED.carried;
}

/** Enqueues what carries the effects. One refused for its key refuses all of a call, so the rest is sent again without it. */
async function carry(s: string, { run, tryEnqueue }: Inside, { redriveId: id, mode }: Redrive, fit: readonly Waiting[], at: At) {
  const messageOf = ({ n, id: messageId, carrier }: Waiting): NewMessage => {
    if (carrier) return carrier;
    const said = `item ${n} of redrive ${id} has no message to carry the effect of ${messageId}; ${mode} needs one for each`;
    throw new MakegoodError("invariant_violated", said, { id, n });
  };
  for (let rest = fit; rest.length > 0; rest = rest.filter(({ skipped }) => !skipped)) {
    const accepted = await tryEnqueue(rest.map(messageOf), at);
    rest.forEach((item, i) => {
      if (accepted[i]?.kind === "conflict") item.skipped = SKIPPED.keyConflict;
      item.carrierId = accepted[i]?.id ?? null;
      item.known = accepted[i]?.kind === "duplicate";
    });
    if (rest.some(({ skipped }) => skipped)) continue;
    const made = rest.filter(({ known }) => !known);
    const origins = `insert into ${s}.message_origin (message_id, replay_of, redrive_id, edited)
      select x.made, x.replay_of, $1::uuid, false from unnest($2::uuid[], $3::uuid[]) x(made, replay_of) on conflict (message_id) do nothing`;
    await run(origins, [id, made.map(({ carrierId }) => carrierId), made.map((item) => item.id)]);
    return;
  }
}

/** Of the dead letter `d` of a copy; $2: how often it may be tried again. */
const COPY = columns({ id: text("d.id::text"), revision: int("d.revision"), over: flag("d.generation >= $2::int") });

/** Earlier copies of the same effects that died carry them once more; not those that did so often enough. */
async function tryAgain(s: string, { run, intervene }: Inside, fit: readonly Waiting[], by: Redrive, at: At): Promise<void> {
  const known = fit.flatMap((item) => (item.known && item.carrierId ? [item.carrierId] : []));
  if (known.length === 0) return;
  const found = `select ${COPY.list} from ${s}.dead_letter d where d.id = any ($1::uuid[]) and d.resolution = 0 order by d.id for no key update`;
  const rows = await run(found, [known, by.select.copyGenerationMax ?? null], { name: "mg_redrive_copies" });
  const copies = rows.map(COPY.of);
  const over = new Set(copies.flatMap((copy) => (copy.over ? [copy.id] : [])));
  for (const item of fit) if (item.carrierId && over.has(item.carrierId)) item.skipped = SKIPPED.generationCap;
  const again = copies.filter(({ id }) => !over.has(id));
  await intervene("replay", again, by, at);
}

async function send(s: string, inside: Inside, id: string, token: string, items: readonly ToSend[], at: At) {
  const { run } = inside;
  const redrive = await takeUnder(s, run, id, token);
  if (!redrive) return { kind: "lost" } as const;
  if (redrive.status !== "running") return { kind: "not_running" } as const;
  const waiting = await take(s, run, redrive, items);
  const { mode } = redrive;
  const fitting = () => waiting.filter(({ skipped }) => !skipped);
  if (sends(mode)) await leaveCarried(s, run, redrive, fitting());
  if (mode === "new_key" || mode === "copy") await carry(s, inside, redrive, fitting(), at);
  if (mode === "copy") await tryAgain(s, inside, fitting(), redrive, at);
  const done = mode === "new_key" ? "resolve" : mode;
  if (done !== "copy" && done !== "watch") await inside.intervene(done, fitting(), redrive, at);
  const moved = waiting.map(({ n, groupNo, skipped, carrierId }) => {
    return { n, groupNo, to: skipped ? "skipped" : "sent", reason: skipped, carrierId: skipped ? null : carrierId } as const;
  });
  await moveItems(s, run, id, "waiting", moved, at);
  return { kind: "done", sent: fitting().length, skipped: waiting.length - fitting().length } as const;
}

export const createRedriveSend = (home: Home) => ({
  /** What does not stand as it was frozen is skipped with the reason. A missing carrier or an unknown topic throws, and nothing is written. */
  send: (id: string, token: string, items: readonly ToSend[], at: At = {}) =>
    home.transaction("send items of a redrive", (inside) => send(home.s, inside, id, token, items, at)),
});
