/** The engine's operations on redrives. Refusals are thrown and change nothing. */
import { MakegoodError } from "../../message/errors.ts";
import { heldReceivers } from "../carrier.ts";
import type { RecoveryDeps } from "../engine.ts";
import type { Records } from "../records.ts";
import type { Actor, AfterRepair, Versioned } from "../recovery.ts";
import type { RedriveSettings } from "./claimed-redrive.ts";
import { type EditRequest, editMessage } from "./edit.ts";
import { announce, type Redrive, type RedriveStatus, redriveLine, sends } from "./redrive.ts";
import type { RedriveRequest } from "./request.ts";
import { createRunner } from "./runner.ts";
import { type ExecutionRedrive, existing, startForExecution, startRedrive } from "./start.ts";

export interface RedriveDeps extends Pick<RecoveryDeps, "store" | "events" | "ids" | "clock" | "serves" | "checkPayload"> {
  readonly recovery: Pick<Records, "redrives" | "candidate">;
  /** Names this process in claims. */
  readonly owner: string;
  readonly settings?: Partial<RedriveSettings> | undefined;
}

export type Redrives = ReturnType<typeof createRedrives>;

export function createRedrives(deps: RedriveDeps) {
  const { redrives } = deps.recovery;
  const runner = createRunner(deps);

  /** What an execution was approved for has ended with it. */
  async function refuseClosed({ redriveId: id, candidateId }: Redrive): Promise<void> {
    const candidate = candidateId === null ? null : await deps.recovery.candidate(candidateId);
    if (!candidate || (candidate.executionStatus === "executing" && candidate.redriveId === id)) return;
    const text = `redrive ${id} belongs to an execution of candidate ${candidateId} that is over (${candidate.executionStatus}): ask for a new suggestion of group ${candidate.groupId}, or start a redrive of that group`;
    throw new MakegoodError("wrong_state", text, { id, candidateId, groupId: candidate.groupId });
  }

  async function detailed(redrive: Redrive) {
    const { openTopics, ...standing } = await redrives.standing(redrive);
    const waits = redrive.status === "running" && sends(redrive.mode);
    const topics = waits ? await deps.store.topics.list() : [];
    return { ...redrive, ...standing, heldReceivers: heldReceivers(topics, openTopics, redrive, deps.clock.wallMs()) };
  }

  async function move(id: string, word: string, from: readonly RedriveStatus[], to: RedriveStatus, by: Versioned & AfterRepair) {
    const before = await existing(deps, id);
    if (to === "running" && from.includes(before.status)) await refuseClosed(before);
    const why = by.reason ?? null;
    const reason = why === null ? `${word} by ${by.actor}` : `${word} by ${by.actor}: ${why}`;
    const line = redriveLine(word, before, by, why);
    const change = { from, version: by.version, status: to, reason, repair: by.afterRepair };
    const { kind, redrive } = await redrives.change(id, change, [line]);
    if (kind === "version_conflict") {
      const text = `redrive ${id} has moved on to version ${redrive.version}: look again, then decide`;
      throw new MakegoodError("version_conflict", text, { id, version: redrive.version });
    }
    if (kind === "wrong_state") {
      // A person pressed twice.
      if (redrive.status === to) return detailed(redrive);
      const text = `redrive ${id} is ${redrive.status}: it can be ${word} only while it is ${from.join(" or ")}`;
      throw new MakegoodError("wrong_state", text, { id, status: redrive.status });
    }
    announce(deps.events, redrive);
    runner.nudge();
    return detailed(redrive);
  }

  return {
    /** With `dryRun` the list is frozen and shown, and waits for `resumeRedrive`. */
    async startRedrive(request: RedriveRequest, actor: Actor) {
      const { redrive, created } = await startRedrive(deps, request, actor);
      runner.nudge();
      return { redrive: await detailed(redrive), created };
    },
    /** Null: the candidate is no longer executing under this execution. */
    async startForExecution(execution: ExecutionRedrive, actor: Actor) {
      const started = await startForExecution(deps, execution, actor);
      runner.nudge();
      return started;
    },
    redrives: redrives.list,
    redrive: async (id: string) => detailed(await existing(deps, id)),
    async redriveItems(id: string, page: Parameters<typeof redrives.items>[1]) {
      await existing(deps, id);
      return redrives.items(id, page);
    },
    pauseRedrive: (id: string, by: Versioned) => move(id, "paused", ["running"], "paused", by),
    resumeRedrive: (id: string, by: Versioned & AfterRepair) =>
      move(id, "resumed", ["planned", "paused", "stopped"], "running", by),
    cancelRedrive: (id: string, by: Versioned) =>
      move(id, "cancelled", ["planned", "running", "paused", "stopped"], "cancelled", by),
    edit: (messageId: string, edit: EditRequest) => editMessage(deps, messageId, edit),
    origin: redrives.origin,
    runner,
  };
}
