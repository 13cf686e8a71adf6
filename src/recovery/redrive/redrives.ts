/**
 * The engine's operations on redrives: start, follow, pause, resume, cancel, edit and retry one message. Refusals are thrown and
 * change nothing. The runner that carries redrives out is started in processes that work.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { MessageView } from "../../message/message.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Actor, AfterRepair, Recovery, Versioned } from "../recovery.ts";
import { announce } from "./announce.ts";
import type { RedriveDeps } from "./deps.ts";
import { type EditRequest, editMessage } from "./edit.ts";
import { redriveLine } from "./provenance.ts";
import type { Redrive, RedriveStatus } from "./redrive.ts";
import { createRunner, type RedriveRunner } from "./runner.ts";
import { type ExecutionRedrive, startForExecution, startRedrive } from "./start.ts";

export type RedriveOperations = Pick<
  Recovery,
  "startRedrive" | "redrives" | "redrive" | "redriveItems" | "pauseRedrive" | "resumeRedrive" | "cancelRedrive" | "origin"
>;

export interface Redrives extends RedriveOperations {
  edit(messageId: string, edit: EditRequest): Promise<MessageView>;
  /** Null: the candidate is no longer executing under this execution, and nothing was done. */
  startForExecution(execution: ExecutionRedrive, actor: Actor): Promise<Redrive | null>;
  readonly runner: RedriveRunner;
}

interface Move {
  readonly word: string;
  readonly to: RedriveStatus;
  readonly from: readonly RedriveStatus[];
}

const PAUSE: Move = { word: "paused", to: "paused", from: ["running"] };
const RESUME: Move = { word: "resumed", to: "running", from: ["planned", "paused", "stopped"] };
const CANCEL: Move = { word: "cancelled", to: "cancelled", from: ["planned", "running", "paused", "stopped"] };

export function createRedrives(deps: RedriveDeps): Redrives {
  const { redrives } = deps.recovery;
  const runner = createRunner(deps);

  async function found(id: string): Promise<Redrive> {
    const redrive = isUuid(id) ? await redrives.get(id) : null;
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
    announce(deps.events, redrive, null);
    runner.nudge();
    return redrive;
  }

  return {
    async startRedrive(request, actor) {
      const started = await startRedrive(deps, request, actor);
      runner.nudge();
      return started;
    },
    async startForExecution(execution, actor) {
      const started = await startForExecution(deps, execution, actor);
      runner.nudge();
      return started;
    },
    redrives: (filter) => redrives.list(filter),
    redrive: found,
    async redriveItems(id, page) {
      await found(id);
      return redrives.items(id, page);
    },
    pauseRedrive: (id, by) => move(id, PAUSE, by),
    resumeRedrive: (id, by) => move(id, RESUME, by),
    cancelRedrive: (id, by) => move(id, CANCEL, by),
    edit: (messageId, edit) => editMessage(deps, messageId, edit),
    origin: async (messageId) => (isUuid(messageId) ? redrives.origin(messageId) : null),
    runner,
  };
}

function notFound(id: string): MakegoodError {
  return new MakegoodError("redrive_not_found", `there is no redrive ${id.slice(0, 100)}`, { id });
}
