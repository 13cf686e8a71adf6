/**
 * Groups over HTTP: list, one with the reasons why its failures are together, its occurrences, merge, split, a fresh suggestion; and the
 * record of who did what, and the statistics.
 */

import { isUuid } from "../../../platform/ids.ts";
import type { Recovery } from "../../../recovery/recovery.ts";
import { candidateDetailJson, candidateJson } from "../../contract/contract-candidate.ts";
import { groupJson, occurrenceJson, occurrenceText, provenanceJson, statsJson } from "../../contract/contract-group.ts";
import type { Fields } from "../../contract/fields.ts";
import type { Reply } from "../../contract/problem.ts";
import { problem } from "../../contract/problem.ts";
import { type ApiRequest, type Handler, json, jsonText } from "../../http.ts";
import type { Kernel } from "../../kernel.ts";
import { readBody, reasonOf } from "./body.ts";
import { readQuery } from "./query.ts";
import { notFound, numberIn, type RecoveryHandler, recoveryHandler } from "./recovery-request.ts";

const ID_MAX = Number.MAX_SAFE_INTEGER;
/** Occurrences may carry two mebibytes each. */
const PAYLOAD_PAGE_MAX = 20;
const MERGE_MAX = 100;
const WORDS_MAX = 20;
const WORD_CHARS_MAX = 200;

export type GroupHandlers = Readonly<
  Record<"list" | "get" | "occurrences" | "merge" | "split" | "suggest" | "provenance" | "stats", Handler>
>;

export function groupHandlers(kernel: Kernel): GroupHandlers {
  const make = (handle: RecoveryHandler): Handler => recoveryHandler(kernel, handle);
  return {
    list: make(list),
    get: make((recovery, request) => withGroup(request, (groupId) => show(recovery, groupId))),
    occurrences: make((recovery, request) => withGroup(request, (groupId) => occurrences(recovery, request, groupId))),
    merge: make((recovery, request, actor) =>
      withGroup(request, async (into) => {
        const asked = await readBody(request, (fields) => ({ from: fromOf(fields, into), reason: reasonOf(fields) }));
        if (!asked.ok) return asked.reply;
        return json(200, groupJson(await recovery.merge(into, asked.value.from, asked.value.reason, actor)));
      }),
    ),
    split: make((recovery, request, actor) =>
      withGroup(request, async (groupId) => {
        const asked = await readBody(request, (fields) => ({ words: wordsOf(fields), reason: reasonOf(fields) }));
        if (!asked.ok) return asked.reply;
        const { group, moved } = await recovery.split(groupId, asked.value.words, asked.value.reason, actor);
        return json(201, { ...groupJson(group), moved }, { location: `/api/v1/recovery/groups/${group.groupId}` });
      }),
    ),
    suggest: make((recovery, request, actor) =>
      withGroup(request, async (groupId) => {
        const asked = await readBody(request, () => null, { optional: true });
        if (!asked.ok) return asked.reply;
        const { candidateId } = await recovery.suggest(groupId, actor);
        return json(200, candidateDetailJson(await recovery.candidate(candidateId)));
      }),
    ),
    provenance: make(provenance),
    stats: make(async (recovery, request) => {
      const query = readQuery(request.query, () => null);
      return query.ok ? json(200, statsJson(await recovery.stats())) : query.reply;
    }),
  };
}

async function list(recovery: Recovery, request: ApiRequest): Promise<Reply> {
  const query = readQuery(request.query, (read) => ({
    topic: read.text("topic"),
    code: read.text("error_code"),
    tenantId: read.text("tenant_id"),
    open: read.boolean("open"),
    merged: read.boolean("merged"),
    ...read.page(),
  }));
  if (!query.ok) return query.reply;
  const { data, nextCursor } = await recovery.groups(query.value);
  return json(200, { data: data.map(groupJson), next_cursor: nextCursor });
}

async function show(recovery: Recovery, groupId: number): Promise<Reply> {
  const { group, candidate, occurrences: newest, why } = await recovery.group(groupId);
  return json(200, {
    ...groupJson(group),
    why,
    candidate: candidate === null ? null : candidateJson(candidate, group),
    occurrences: newest.map(occurrenceJson),
  });
}

async function occurrences(recovery: Recovery, request: ApiRequest, groupId: number): Promise<Reply> {
  const query = readQuery(request.query, (read) => {
    const payload = read.boolean("payload") ?? false;
    const page = read.page(payload ? PAYLOAD_PAGE_MAX : undefined);
    return { payload, page: { ...page, open: read.boolean("open"), tenantId: read.text("tenant_id") } };
  });
  if (!query.ok) return query.reply;
  const { data, nextCursor } = await recovery.occurrences(groupId, query.value.page);
  const texts = data.map((one) => occurrenceText(one, query.value.payload));
  return jsonText(200, `{"data":[${texts.join(",")}],"next_cursor":${JSON.stringify(nextCursor)}}`);
}

async function provenance(recovery: Recovery, request: ApiRequest): Promise<Reply> {
  const query = readQuery(request.query, (read) => {
    const [groupId, candidateId] = [read.integer("group_id", 1, ID_MAX), read.integer("candidate_id", 1, ID_MAX)];
    const redriveId = read.text("redrive_id");
    const of = {
      ...(groupId === undefined ? {} : { groupId }),
      ...(candidateId === undefined ? {} : { candidateId }),
      ...(redriveId === undefined ? {} : { redriveId }),
    };
    return { of, redriveId, page: read.page() };
  });
  if (!query.ok) return query.reply;
  const { of, redriveId, page } = query.value;
  if (redriveId !== undefined && !isUuid(redriveId)) return problem("invalid_query", "redrive_id: must be a UUID");
  const { data, nextCursor } = await recovery.provenance(of, page);
  return json(200, { data: data.map(provenanceJson), next_cursor: nextCursor });
}

async function withGroup(request: ApiRequest, use: (groupId: number) => Promise<Reply>): Promise<Reply> {
  const groupId = numberIn(request, "id");
  return groupId === null ? notFound("group", request.params.get("id") ?? "") : use(groupId);
}

function fromOf(fields: Fields, into: number): number[] {
  const isId = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1;
  const from = fields.list("from", MERGE_MAX, isId, "group ids") ?? [];
  if (!fields.has("from")) fields.fault("from", "is missing: the ids of the groups that join this one");
  if (from.includes(into)) fields.fault("from", `holds ${into}, the group itself`);
  return [...new Set(from)];
}

function wordsOf(fields: Fields): string[] {
  const isWord = (value: unknown): value is string =>
    typeof value === "string" && value.trim() !== "" && value.length <= WORD_CHARS_MAX && !/\p{Cc}|\p{Surrogate}/u.test(value);
  const words = fields.list("words", WORDS_MAX, isWord, `words of at most ${WORD_CHARS_MAX} characters`) ?? [];
  if (!fields.has("words")) fields.fault("words", "is missing: what a failure must contain to go to the new group");
  return words;
}
