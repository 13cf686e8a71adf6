/**
 * The engine's operations on redrives: start, follow, pause, resume, cancel, edit and retry one message. Refusals are thrown and
 * change nothing. The runner that carries redrives out is started in processes that work.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Actor, AfterRepair, Versioned } from "../recovery.ts";
import { announce, redriveLine } from "./announce.ts";
import type { RedriveDeps } from "./deps.ts";
import { type EditRequest, editMessage } from "./edit.ts";
import { heldReceivers } from "./receivers.ts";
import { type Redrive, type RedriveStatus, sends } from "./redrive.ts";
import type { RedriveRequest } from "./request.ts";
import { createRunner } from "./runner.ts";
import { type ExecutionRedrive, startForExecution, startRedrive } from "./start.ts";

export type Redrives = ReturnType<typeof createRedrives>;

interface Move {
  readonly word: string;
  readonly to: RedriveStatus;
  readonly from: readonly RedriveStatus[];
}

const PAUSE: Move = { word: "paused", to: "paused", from: ["running"] };
const RESUME: Move = { word: "resumed", to: "running", from: ["planned", "paused", "stopped"] };
const CANCEL: Move = { word: "cancelled", to: "cancelled", from: ["planned", "running", "paused", "stopped"] };

export function createRedrives(deps: RedriveDeps) {
  const { redrives } = deps.recovery;
  const runner = createRunner(deps);

  async function found(id: string): Promise<Redrive> {
    const redrive = await redrives.get(id);
    if (!redrive) throw notFound(id);
    return redrive;
  }

  /** What an execution was approved for has ended with it. */
  async function refuseClosed({ redriveId: id, candidateId }: Redrive): Promise<void> {
    const candidate = candidateId === null ? null : await deps.recovery.candidate(candidateId);
    if (!candidate || (candidate.executionStatus === "executing" && candidate.redriveId === id)) return;
    const text = `redrive ${id} belongs to an execution of candidate ${candidateId} that is over (${candidate.executionStatus}): ask for a new suggestion of group ${candidate.groupId}, or start a redrive of that group`;
    throw new MakegoodError("wrong_state", text, { id, candidateId, groupId: candidate.groupId });
  }

  /** With what one needs to understand how it stands. */
  async function detailed(redrive: Redrive) {
    const { openTopics, ...standing } = await redrives.standing(redrive);
    const waits = redrive.status === "running" && sends(redrive.mode);
    const topics = waits ? await deps.store.topics.list() : [];
    return { ...redrive, ...standing, heldReceivers: heldReceivers(topics, openTopics, redrive, deps.clock.wallMs()) };
  }

  async function move(id: string, { word, to, from }: Move, by: Versioned & AfterRepair): Promise<Redrive> {
    const before = await found(id);
    if (to === "running" && from.includes(before.status)) await refuseClosed(before);
    const why = by.reason ?? null;
    const reason = why === null ? `${word} by ${by.actor}` : `${word} by ${by.actor}: ${why}`;
    const line = redriveLine(word, before, by, why);
    const changed = await redrives.change(id, { from, version: by.version, status: to, reason, repair: by.afterRepair }, [line]);
    if (changed.kind === "not_found") throw notFound(id);
    const { redrive } = changed;
    if (changed.kind === "version_conflict") {
      const text = `redrive ${id} has moved on to version ${redrive.version}: look again, then decide`;
      throw new MakegoodError("version_conflict", text, { id, version: redrive.version });
    }
    if (changed.kind === "wrong_state") {
      // A person pressed twice.
      if (redrive.status === to) return redrive;
      const text = `redrive ${id} is ${redrive.status}: it can be ${word} only while it is ${from.join(" or ")}`;
      throw new MakegoodError("wrong_state", text, { id, status: redrive.status });
    }
    announce(deps.events, redrive);
    runner.nudge();
    return redrive;
  }

  return {
    /** With `dryRun` the list is frozen and shown, and waits for `resumeRedrive`. */
    async startRedrive(request: RedriveRequest, actor: Actor) {
      const { redrive, created } = await startRedrive(deps, request, actor);
      runner.nudge();
      return { redrive: await detailed(redrive), created };
    },
    /** Null: the candidate is no longer executing under this execution, and nothing was done. */
    async startForExecution(execution: ExecutionRedrive, actor: Actor) {
      const started = await startForExecution(deps, execution, actor);
      runner.nudge();
      return started;
    },
    redrives: redrives.list,
    redrive: async (id: string) => detailed(await found(id)),
    async redriveItems(id: string, page: Parameters<typeof redrives.items>[1]) {
      await found(id);
      return redrives.items(id, page);
    },
    pauseRedrive: async (id: string, by: Versioned) => detailed(await move(id, PAUSE, by)),
    resumeRedrive: async (id: string, by: Versioned & AfterRepair) => detailed(await move(id, RESUME, by)),
    cancelRedrive: async (id: string, by: Versioned) => detailed(await move(id, CANCEL, by)),
    edit: (messageId: string, edit: EditRequest) => editMessage(deps, messageId, edit),
    origin: redrives.origin,
    runner,
  };
}

function notFound(id: string): MakegoodError {
  return new MakegoodError("redrive_not_found", `there is no redrive ${id.slice(0, 100)}`, { id });
}
