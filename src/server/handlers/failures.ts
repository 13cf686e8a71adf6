/**
 * POST ingest, evaluate and suggest. Ingest counts a failure once per idempotency key: 201 it was counted, 200 this key was counted
 * before, 422 this key belongs to another payload. Evaluate and suggest keep nothing.
 */
import { counted, type FAILURE_ROUTES } from "../../contract/recovery/failures.ts";
import { afterOthers } from "../../platform/after-others.ts";
import type { EvaluateRequest } from "../../recovery/recovery.ts";
import { json } from "../http.ts";
import { candidateJson, evaluateJson } from "../json/candidate-json.ts";
import { groupJson } from "../json/group-json.ts";
import { wireOf } from "../json/wire.ts";
import type { Kernel } from "../kernel.ts";
import type { Asked } from "../read-request.ts";
import type { Handler, Handlers } from "./handlers.ts";
import { headerKey } from "./messages.ts";
import { readFailure } from "./read-failure.ts";
import { recoveryHandlers } from "./recovery-request.ts";

export function failureHandlers(kernel: Kernel): Handlers<keyof typeof FAILURE_ROUTES> {
  const handlers = recoveryHandlers<keyof typeof FAILURE_ROUTES>(kernel, {
    async ingestFailure(recovery, asked, actor) {
      const key = headerKey(asked);
      await othersBefore(asked.body);
      const report = readFailure(asked.body, key);
      await othersBefore(asked.body);
      const answer = await recovery.ingest(report, actor);
      const isDuplicate = answer.status === "duplicate";
      const location = `/api/v1/recovery/candidates/${answer.candidateId}`;
      return json(isDuplicate ? 200 : 201, wireOf(counted, answer, { is_duplicate: isDuplicate }), { location });
    },
    evaluateFailure: async (recovery, { body }) => json(200, evaluateJson(await recovery.evaluate(askedFor(body)))),
    async suggestFailure(recovery, { body }) {
      const answer = await recovery.evaluate(askedFor(body));
      const known = answer.groupId === null ? null : await recovery.group(answer.groupId);
      const group = known && groupJson(known.group);
      const candidate = known?.candidate ? candidateJson(known.candidate, known.group) : null;
      return json(200, { ...evaluateJson(answer), group, candidate });
    },
  });
  return { ...handlers, ingestFailure: told(kernel, handlers.ingestFailure) };
}

/** Where both names of the seeds stand, the more exact one counts. */
function askedFor({ errorCode, errorType, errorMessage, raw, ...rest }: Asked<"evaluateFailure">["body"]): EvaluateRequest {
  return { ...rest, errorCode: errorCode ?? errorType ?? "", errorMessage: errorMessage ?? raw };
}

/** Decoding, reading and hashing megabytes take a while each: others go first in between, and so do other long texts. */
const LONG_CHARS = 262_144;
let othersFirst = Promise.resolve();

async function othersBefore(text: string): Promise<void> {
  if (text.length <= LONG_CHARS) return;
  othersFirst = othersFirst.then(() => new Promise<void>(afterOthers));
  await othersFirst;
}

/** Each request is counted, by what came of it. */
function told({ mg, clock }: Kernel, handler: Handler<"ingestFailure">): Handler<"ingestFailure"> {
  return async (request) => {
    const startMs = clock.monotonicMs();
    const tell = (status: "accepted" | "duplicate" | "error", queued: number): void => {
      const detection = status === "duplicate" ? "idempotency_key" : null;
      const ms = clock.monotonicMs() - startMs;
      mg.events.emit({ type: "recovery_ingest", source: "api", status, count: 1, queued, ms, detection });
    };
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
