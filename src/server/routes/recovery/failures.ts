/**
 * POST ingest, evaluate and suggest. Ingest counts a failure once per idempotency key: 201 it was counted, 200 this key was counted
 * before, 422 this key belongs to another payload (CON-23, DR-35). Evaluate and suggest persist nothing.
 */
import { nextTurn } from "../../../platform/turn.ts";
import type { Recovery } from "../../../recovery/recovery.ts";
import { BODY_BYTES, readText } from "../../body.ts";
import { candidateJson, evaluateJson } from "../../contract/contract-candidate.ts";
import { groupJson, ingestJson } from "../../contract/contract-group.ts";
import type { Reply } from "../../contract/problem.ts";
import { type ApiRequest, type Handler, json } from "../../http.ts";
import type { Kernel } from "../../kernel.ts";
import { headerKey } from "../messages.ts";
import { invalidRequest, readBody } from "./body.ts";
import { readEvaluate, readFailure } from "./read-failure.ts";
import { recoveryHandler } from "./recovery-request.ts";

export interface FailureHandlers {
  readonly ingest: Handler;
  readonly evaluate: Handler;
  readonly suggest: Handler;
}

export function failureHandlers(kernel: Kernel): FailureHandlers {
  return {
    ingest: counted(
      kernel,
      recoveryHandler(kernel, async (recovery, request, actor) => {
        const text = await readText(request, BODY_BYTES.failure);
        if (!text.ok) return text.reply;
        const key = headerKey(request);
        if (!key.ok) return key.reply;
        await turnFor(text.value);
        const read = readFailure(text.value, key.value);
        if (!read.ok) return invalidRequest(read.faults);
        await turnFor(text.value);
        const answer = await recovery.ingest(read.report, actor);
        const location = `/api/v1/recovery/candidates/${answer.candidateId}`;
        return json(answer.status === "duplicate" ? 200 : 201, ingestJson(answer), { location });
      }),
    ),
    evaluate: recoveryHandler(kernel, async (recovery, request) => {
      const asked = await readBody(request, readEvaluate, { bytesMax: BODY_BYTES.failure });
      if (!asked.ok) return asked.reply;
      return json(200, evaluateJson(await recovery.evaluate(asked.value)));
    }),
    suggest: recoveryHandler(kernel, async (recovery, request) => {
      const asked = await readBody(request, readEvaluate, { bytesMax: BODY_BYTES.failure });
      if (!asked.ok) return asked.reply;
      const answer = await recovery.evaluate(asked.value);
      return json(200, { ...evaluateJson(answer), ...(await known(recovery, answer.groupId)) });
    }),
  };
}

/** Decoding, reading and hashing megabytes take a while each: others have their turn in between, and so have other long texts. */
const LONG_CHARS = 262_144;
let turns = Promise.resolve();

async function turnFor(text: string): Promise<void> {
  if (text.length <= LONG_CHARS) return;
  turns = turns.then(() => new Promise<void>(nextTurn));
  await turns;
}

/** What is known already of the group that such a failure would join. */
async function known(recovery: Recovery, groupId: number | null): Promise<Record<string, unknown>> {
  if (groupId === null) return { group: null, candidate: null };
  const { group, candidate } = await recovery.group(groupId);
  return { group: groupJson(group), candidate: candidate === null ? null : candidateJson(candidate, group) };
}

/** REC-26: each request is counted, by what came of it. */
function counted({ mg, clock }: Kernel, handler: Handler): Handler {
  return async (request: ApiRequest): Promise<Reply> => {
    const startMs = clock.monotonicMs();
    const tell = (status: "accepted" | "duplicate" | "error", queued: number): void =>
      mg.events.emit({
        type: "recovery_ingest",
        source: "api",
        status,
        count: 1,
        queued,
        ms: clock.monotonicMs() - startMs,
        detection: status === "duplicate" ? "idempotency_key" : null,
      });
    try {
      const reply = await handler(request);
      if (reply.status >= 400) tell("error", 0);
      else tell(reply.status === 200 ? "duplicate" : "accepted", reply.body.includes('"evaluation_queued":true') ? 1 : 0);
      return reply;
    } catch (error) {
      tell("error", 0);
      throw error;
    }
  };
}
