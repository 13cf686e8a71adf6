/**
 * POST ingest, evaluate and suggest. Ingest counts a failure once per idempotency key: 201 it was counted, 200 this key was counted
 * before, 422 this key belongs to another payload. Evaluate and suggest keep nothing.
 */
import { afterOthers } from "../../platform/after-others.ts";
import type { EvaluateRequest, Recovery } from "../../recovery/recovery.ts";
import { json } from "../http.ts";
import { candidateJson, evaluateJson } from "../json/candidate-json.ts";
import { groupJson, ingestJson } from "../json/group-json.ts";
import type { Kernel } from "../kernel.ts";
import type { Reply } from "../problem.ts";
import type { Asked } from "../read-request.ts";
import type { Handler, Handlers } from "./handlers.ts";
import { headerKey } from "./messages.ts";
import { readFailure } from "./read-failure.ts";
import { recoveryHandlers } from "./recovery-request.ts";

type Routes = "ingestFailure" | "evaluateFailure" | "suggestFailure";

export function failureHandlers(kernel: Kernel): Handlers<Routes> {
  const handlers = recoveryHandlers<Routes>(kernel, {
    async ingestFailure(recovery, asked, actor) {
      const key = headerKey(asked);
      await othersBefore(asked.body);
      const report = readFailure(asked.body, key);
      await othersBefore(asked.body);
      const answer = await recovery.ingest(report, actor);
      const location = `/api/v1/recovery/candidates/${answer.candidateId}`;
      return json(answer.status === "duplicate" ? 200 : 201, ingestJson(answer), { location });
    },
    evaluateFailure: async (recovery, { body }) => json(200, evaluateJson(await recovery.evaluate(askedFor(body)))),
    async suggestFailure(recovery, { body }) {
      const answer = await recovery.evaluate(askedFor(body));
      return json(200, { ...evaluateJson(answer), ...(await known(recovery, answer.groupId)) });
    },
  });
  return { ...handlers, ingestFailure: counted(kernel, handlers.ingestFailure) };
}

/** Where both names of the seeds stand, the more exact one counts. */
function askedFor(body: Asked<"evaluateFailure">["body"]): EvaluateRequest {
  return {
    errorCode: body.error_code ?? body.error_type ?? "",
    errorMessage: body.error_message ?? body.raw,
    stackTrace: body.stack_trace,
    topic: body.topic,
    sink: body.sink,
    skillId: body.skill_id,
    occurrenceCount: body.occurrence_count,
  };
}

/** Decoding, reading and hashing megabytes take a while each: others go first in between, and so do other long texts. */
const LONG_CHARS = 262_144;
let othersFirst = Promise.resolve();

async function othersBefore(text: string): Promise<void> {
  if (text.length <= LONG_CHARS) return;
  othersFirst = othersFirst.then(() => new Promise<void>(afterOthers));
  await othersFirst;
}

/** What is known already of the group that such a failure would join. */
async function known(recovery: Recovery, groupId: number | null): Promise<Record<string, unknown>> {
  if (groupId === null) return { group: null, candidate: null };
  const { group, candidate } = await recovery.group(groupId);
  return { group: groupJson(group), candidate: candidate === null ? null : candidateJson(candidate, group) };
}

/** Each request is counted, by what came of it. */
function counted({ mg, clock }: Kernel, handler: Handler<"ingestFailure">): Handler<"ingestFailure"> {
  return async (request): Promise<Reply> => {
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
