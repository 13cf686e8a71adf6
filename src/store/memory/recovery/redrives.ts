/**
 * Redrives as records: frozen lists, started once per request key, changed by people, claimed by one runner at a time under a token.
 */
import type { MessageView } from "../../../message/message.ts";
import type { Candidate, NewProvenance, Paged } from "../../recovery.ts";
import {
  type ItemState,
  keptSelect,
  type NewRedrive,
  type Redrive,
  type RedriveClaim,
  type RedriveItem,
  type RedriveStarted,
  type RedriveStatus,
  SKIPPED,
} from "../../redrive.ts";
import type { At } from "../../store.ts";
import { view } from "../read.ts";
import { nowMs } from "../state.ts";
import { type PageRequest, paged } from "./pages.ts";
import { record } from "./provenance.ts";
import { atomically, countItems, type ItemRow, itemsOf, type Memory, type RedriveRow, set, setItem } from "./records.ts";
import { type Selected, select } from "./select.ts";

export function redriveView(memory: Memory, row: RedriveRow): Redrive {
  const { requestHash: _hash, token: _token, leaseUntilMs: _until, workedMs: _worked, ...rest } = row;
  const items = itemsOf(memory, row.redriveId);
  return { ...rest, counts: { selected: items.length, ...countItems(items) } };
}

const itemView = ({ lookedMs: _, ...item }: ItemRow): RedriveItem => item;

export function start(memory: Memory, request: NewRedrive, at?: At): RedriveStarted {
  return atomically(memory, (): RedriveStarted => {
    const known = earlierOf(memory, request);
    if (known) {
      const kind = known.requestHash === request.requestHash ? "same" : "conflict";
      return { kind, redrive: redriveView(memory, known) };
    }
    const nowAt = nowMs(memory.kernel, at);
    const now = new Date(nowAt);
    if (request.executionId !== undefined && !hand(memory, request, now)) return { kind: "lost" };
    const { provenance, executionId: _, ...fields } = request;
    const row: RedriveRow = {
      ...fields,
      select: keptSelect(request.select),
      statusReason: null,
      version: 1,
      state: null,
      createdAt: now,
      startedAt: request.status === "running" ? now : null,
      endedAt: null,
      ...{ token: null, leaseUntilMs: 0, workedMs: null },
    };
    set(memory, memory.redrives, row.redriveId, row);
    const items = select(memory, request.select).map((each, i) => frozen(each, i + 1, request, now));
    set(memory, memory.items, row.redriveId, new Map(items.map((item) => [item.n, item])));
    record(memory, provenance, now);
    return { kind: "started", redrive: redriveView(memory, row) };
  });
}

function earlierOf(memory: Memory, { redriveId: id, idempotencyKey }: NewRedrive): RedriveRow | undefined {
  return (idempotencyKey === null ? undefined : byKey(memory, idempotencyKey)) ?? memory.redrives.get(id);
}

const byKey = (memory: Memory, idempotencyKey: string): RedriveRow | undefined =>
  [...memory.redrives.values()].find((row) => row.idempotencyKey === idempotencyKey);

export function find(memory: Memory, idempotencyKey: string): Redrive | null {
  const row = byKey(memory, idempotencyKey);
  return row ? redriveView(memory, row) : null;
}

/** The redrive carries the execution on from here; false: the candidate runs under another execution, or not any more. */
function hand(memory: Memory, { redriveId: id, candidateId, executionId }: NewRedrive, now: Date): boolean {
  const candidate = memory.candidates.get(candidateId ?? 0);
  if (candidate?.executionStatus !== "executing" || candidate.executionId !== executionId) return false;
  const carried: Candidate = {
    ...candidate,
    redriveId: id,
    leaseUntil: null,
    version: candidate.version + 1,
    updatedAt: now,
  };
  set(memory, memory.candidates, carried.candidateId, carried);
  return true;
}

function frozen({ stored, groupId }: Selected, n: number, { select: { generationMax } }: NewRedrive, now: Date): ItemRow {
  const over = stored.generation >= generationMax;
  return {
    n,
    messageId: stored.message.id,
    generation: stored.generation,
    revision: stored.revision,
    groupId,
    state: over ? "skipped" : "waiting",
    reason: over ? SKIPPED.generationCap : null,
    carrierId: null,
    sentAt: null,
    endedAt: over ? now : null,
    lookedMs: null,
  };
}

export function get(memory: Memory, id: string): Redrive | null {
  const row = memory.redrives.get(id);
  return row ? redriveView(memory, row) : null;
}

export function list(memory: Memory, filter: PageRequest & { readonly status?: RedriveStatus | undefined }): Paged<Redrive> {
  const rows = [...memory.redrives.values()].filter(({ status }) => filter.status === undefined || filter.status === status);
  const page = paged(rows, filter, ({ redriveId: id }) => [id], -1);
  return { ...page, data: page.data.map((row) => redriveView(memory, row)) };
}

export function items(
  memory: Memory,
  id: string,
  page: PageRequest & { readonly state?: ItemState | undefined },
): Paged<RedriveItem> {
  const rows = itemsOf(memory, id).filter(({ state }) => page.state === undefined || page.state === state);
  return paged(rows.map(itemView), page, ({ n }) => [n], 1);
}

export function next(
  memory: Memory,
  id: string,
  limit: number,
  bodies: boolean,
): { readonly item: RedriveItem; readonly message: MessageView | null }[] {
  const waiting = itemsOf(memory, id).filter(({ state }) => state === "waiting");
  return waiting.slice(0, Math.max(0, limit)).map((item) => {
    const stored = bodies ? memory.kernel.messages.get(item.messageId) : undefined;
    return { item: itemView(item), message: stored ? view(stored) : null };
  });
}

interface Change {
  readonly from: readonly RedriveStatus[];
  readonly version?: number | undefined;
  readonly status: RedriveStatus;
  readonly reason: string | null;
}

export function change(memory: Memory, id: string, request: Change, provenance: readonly NewProvenance[], at?: At) {
  return atomically(memory, () => {
    const row = memory.redrives.get(id);
    if (!row) return { kind: "not_found" as const };
    const refused = (kind: "wrong_state" | "version_conflict") => ({ kind, redrive: redriveView(memory, row) });
    if (request.version !== undefined && request.version !== row.version) return refused("version_conflict");
    if (!request.from.includes(row.status)) return refused("wrong_state");
    const now = new Date(nowMs(memory.kernel, at));
    const { status, reason } = request;
    const ended = status === "done" || status === "cancelled";
    const changed: RedriveRow = {
      ...row,
      status,
      statusReason: reason,
      version: row.version + 1,
      startedAt: row.startedAt ?? (status === "running" ? now : null),
      endedAt: ended ? now : null,
    };
    set(memory, memory.redrives, id, changed);
    if (status === "cancelled") {
      const waiting = itemsOf(memory, id).filter(({ state }) => state === "waiting");
      for (const item of waiting) setItem(memory, id, { ...item, state: "skipped", reason: SKIPPED.cancelled, endedAt: now });
    }
    record(memory, provenance, now);
    return { kind: "done" as const, redrive: redriveView(memory, changed) };
  });
}

export function claim(memory: Memory, _owner: string, leaseMs: number, at?: At): RedriveClaim | null {
  const now = nowMs(memory.kernel, at);
  const worked = ({ workedMs }: RedriveRow): number => workedMs ?? Number.NEGATIVE_INFINITY;
  const [row] = [...memory.redrives.values()]
    .filter((each) => (each.token === null || each.leaseUntilMs <= now) && hasWork(memory, each))
    .sort((a, b) => (worked(a) === worked(b) ? (a.redriveId < b.redriveId ? -1 : 1) : worked(a) - worked(b)));
  if (!row) return null;
  const token = Buffer.from(memory.kernel.random.bytes(16)).toString("hex");
  const held = { ...row, token, leaseUntilMs: now + leaseMs, workedMs: now };
  set(memory, memory.redrives, row.redriveId, held);
  return { redrive: redriveView(memory, held), token };
}

function hasWork(memory: Memory, { redriveId: id, status }: RedriveRow): boolean {
  if (status === "running") return true;
  return status !== "planned" && itemsOf(memory, id).some(({ state }) => state === "sent");
}

/** The redrive, if the token is the one that counts. */
export function underToken(memory: Memory, id: string, token: string): RedriveRow | null {
  const row = memory.redrives.get(id);
  return row && row.token !== null && row.token === token ? row : null;
}

interface Keep {
  readonly leaseMs?: number | undefined;
  readonly state?: string | undefined;
  readonly release?: boolean | undefined;
}

export function keep(memory: Memory, id: string, token: string, { leaseMs, state, release }: Keep, at?: At): boolean {
  const row = underToken(memory, id, token);
  if (!row) return false;
  const now = nowMs(memory.kernel, at);
  set(memory, memory.redrives, id, {
    ...row,
    state: state ?? row.state,
    leaseUntilMs: leaseMs === undefined ? row.leaseUntilMs : now + leaseMs,
    token: release ? null : row.token,
    workedMs: now,
  });
  return true;
}
