/**
 * Messages over HTTP: accept one or a batch, read one back with its timeline, list them. Accepted means committed: a 201
 * is written after the store has answered, never before.
 */
import { markChecked, type TextMessage } from "../../client/build-message.ts";
import type { Enqueued } from "../../client/client.ts";
import { standingOf, standings } from "../../client/standing.ts";
import { type ErrorCode, isMakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { Resolution, Status } from "../../message/message.ts";
import { isTraceparent } from "../../message/validate.ts";
import { isUuid } from "../../platform/ids.ts";
import type { ListFilter } from "../../store/store.ts";
import { BODY_BYTES, readText } from "../body.ts";
import { attemptJson, messageJson, pageText, provenanceJson, withPayload } from "../contract/contract.ts";
import { keyFault, type Posted, type PostedMessage, readPosted } from "../contract/contract-message.ts";
import { type ProblemItem, problem, type Reply } from "../contract/problem.ts";
import { type ApiRequest, type Handler, json, jsonText, type Parsed, parsed, refused } from "../http.ts";
import type { Kernel } from "../kernel.ts";

const STATUSES: readonly Status[] = ["pending", "processing", "delivered", "dead"];
const RESOLUTIONS: readonly Resolution[] = ["open", "resolved", "discarded"];
/** With payloads a page may be large: a hundred of a mebibyte each is as much as one answer should be. */
const PAYLOAD_PAGE_MAX = 100;

export function messageHandlers(kernel: Kernel): { post: Handler; get: Handler; list: Handler } {
  return {
    async post(request) {
      const text = await readText(request, BODY_BYTES.messages);
      if (!text.ok) return text.reply;
      try {
        const body = readPosted(text.value, kernel.payloadBytesMax);
        if (body.kind === "single") return await postOne(kernel, request, body.posted);
        return await postBatch(kernel, request, body.posted);
      } catch (error) {
        return refusal(error);
      }
    },
    async get(request) {
      const id = request.params.get("id") ?? "";
      const message = isUuid(id) ? await kernel.mg.store.get(id) : null;
      if (!message) return noSuchMessage(id);
      const [history, standing, origin] = await Promise.all([
        kernel.mg.store.history(id),
        standingOf(kernel.mg.store, kernel.clock, message.topic),
        kernel.recovery?.origin(id) ?? null,
      ]);
      const object = {
        ...messageJson(message, standing),
        ...(origin === null ? {} : { replay_of: origin.replayOf, redrive_id: origin.redriveId, edited: origin.edited }),
        timeline: history.attempts.map(attemptJson),
        provenance: history.provenance.map(provenanceJson),
      };
      return jsonText(200, withPayload(object, message.payload));
    },
    async list(request) {
      const query = readQuery(request.query);
      if (!query.ok) return query.reply;
      const filter = { ...query.value.filter, payload: query.value.payloads };
      const [page, standing] = await Promise.all([kernel.mg.store.list(filter), standings(kernel.mg.store, kernel.clock)]);
      return jsonText(200, pageText(page, standing, query.value.payloads));
    },
  };
}

export function noSuchMessage(id: string): Reply {
  return problem("message_not_found", `there is no message ${id.slice(0, 100)}`);
}

async function postOne(kernel: Kernel, request: ApiRequest, posted: Posted): Promise<Reply> {
  if (!("message" in posted)) {
    const [first] = posted.faults;
    const errors = posted.faults.length > 1 ? posted.faults : undefined;
    const detail = posted.faults.map((fault) => fault.detail).join("; ");
    return problem(first?.code ?? "invalid_message", detail, { errors });
  }
  const key = posted.message.key === null ? headerKey(request) : parsed(posted.message.key);
  if (!key.ok) return key.reply;
  const [accepted] = await kernel.mg.enqueueText([incoming(request, { ...posted.message, key: key.value })]);
  const { id, inserted } = accepted as Enqueued;
  return json(inserted ? 201 : 200, { id, inserted }, { location: `/api/v1/messages/${id}` });
}

async function postBatch(kernel: Kernel, request: ApiRequest, posted: readonly Posted[]): Promise<Reply> {
  if (request.header("idempotency-key") !== null) {
    const detail = "an Idempotency-Key header names one message: give each message of a batch a `key` of its own";
    return problem("invalid_message", detail);
  }
  const messages = posted.flatMap((one) => ("message" in one ? [incoming(request, one.message)] : []));
  if (messages.length < posted.length) return refusedBatch(await allFaults(kernel, posted));
  const data = await kernel.mg.enqueueText(messages);
  return json(data.some(({ inserted }) => inserted) ? 201 : 200, { data: data.map(({ id, inserted }) => ({ id, inserted })) });
}

/** A refused batch names every message that is wrong, those of unknown topics too, so that it is mended once. */
async function allFaults(kernel: Kernel, posted: readonly Posted[]): Promise<ProblemItem[]> {
  const topics = new Set((await kernel.mg.store.topics.list()).map(({ name }) => name));
  return posted.flatMap((one, index): ProblemItem[] => {
    if (!("message" in one)) return one.faults.map((fault) => ({ index, ...fault }));
    const { topic } = one.message;
    return topics.has(topic) ? [] : [{ index, code: "unknown_topic", detail: `there is no topic ${topic}: declare it first` }];
  });
}

function incoming(request: ApiRequest, { payload, ...fields }: PostedMessage): TextMessage {
  const traceparent = request.header("traceparent");
  return markChecked({ ...fields, payloadText: payload, traceparent: isTraceparent(traceparent) ? traceparent : null });
}

function refusedBatch(errors: readonly ProblemItem[]): Reply {
  const wrong = new Set(errors.map(({ index }) => index)).size;
  const words = wrong === 1 ? "one message is" : `${wrong} messages are`;
  return problem("batch_refused", `${words} refused, so none of the batch was accepted`, { errors });
}

/** An error that names elements refuses the batch; any other one is about the whole request. */
function refusal(error: unknown): Reply {
  if (!isMakegoodError(error) || error.retryable) throw error;
  const { index, errors } = error.detail;
  if (Array.isArray(errors)) return refusedBatch((errors as IndexedError[]).map(indexedItem));
  if (typeof index === "number") return refusedBatch([{ index, code: error.code, detail: error.message }]);
  throw error;
}

/** As enqueueText reports each message of a batch. */
interface IndexedError {
  readonly index: number;
  readonly code: ErrorCode;
  readonly message: string;
  readonly detail?: { readonly id?: unknown } | undefined;
}

function indexedItem({ index, code, message, detail }: IndexedError): ProblemItem {
  return typeof detail?.id === "string" ? { index, code, detail: message, id: detail.id } : { index, code, detail: message };
}

/** Bare, or quoted as the draft's structured-field string. */
export function headerKey(request: ApiRequest): Parsed<string | null> {
  const header = request.header("idempotency-key");
  if (header === null) return parsed(null);
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header.trim());
  const key = quoted?.[1] === undefined ? header.trim() : quoted[1].replace(/\\(["\\])/g, "$1");
  const ascii = /^[\x20-\x7e]*$/.test(key);
  const fault = ascii ? keyFault(key) : { code: "invalid_message" as const, detail: "the Idempotency-Key header must be ASCII" };
  return fault ? refused(problem(fault.code, fault.detail.replace("`key`", "the Idempotency-Key header"))) : parsed(key);
}

function readQuery(query: URLSearchParams): Parsed<{ filter: ListFilter; payloads: boolean }> {
  const faults: ProblemItem[] = [];
  const taken = new Set<string>();
  const take = (name: string): string | undefined => {
    taken.add(name);
    const values = query.getAll(name);
    if (values.length > 1) faults.push({ field: name, code: "invalid_query", detail: `${name} is given twice` });
    const value = values[0];
    if (value?.includes("\u0000")) faults.push({ field: name, code: "invalid_query", detail: `${name} holds a NUL` });
    return value === "" ? undefined : value;
  };
  const oneOf = <T extends string>(name: string, allowed: readonly T[]): T | undefined => {
    const value = take(name);
    const found = allowed.find((one) => one === value);
    if (value !== undefined && found === undefined) {
      faults.push({ field: name, code: "invalid_query", detail: `${name} must be one of ${allowed.join(", ")}` });
    }
    return found;
  };
  const payloads = oneOf("payload", ["true", "false"]) === "true";
  const max = payloads ? PAYLOAD_PAGE_MAX : LIMITS.pageMax;
  const limit = take("limit") ?? String(Math.min(LIMITS.pageDefault, max));
  if (!/^[0-9]{1,6}$/.test(limit) || Number(limit) < 1 || Number(limit) > max) {
    faults.push({ field: "limit", code: "invalid_query", detail: `limit must be an integer from 1 to ${max}` });
  }
  const filter: ListFilter = {
    status: oneOf("status", STATUSES),
    resolution: oneOf("resolution", RESOLUTIONS),
    topic: take("topic"),
    tenantId: take("tenant_id"),
    key: take("key"),
    cursor: take("cursor"),
    limit: Number(limit),
  };
  for (const name of new Set(query.keys())) {
    if (!taken.has(name)) faults.push({ field: name.slice(0, 100), code: "invalid_query", detail: `unknown parameter` });
  }
  if (faults.length === 0) return parsed({ filter, payloads });
  const detail = faults.map((fault) => `${fault.field}: ${fault.detail}`).join("; ");
  return refused(problem("invalid_query", detail, { errors: faults }));
}
