/**
 * The recovery seam of the memory store: the oracle of testing/recovery-conformance. It works on the store's own messages, so what it
 * enqueues, replays and resolves is done by the kernel's own code; each call runs to its end without a pause.
 */
import type { RecoveryStore } from "../../recovery.ts";
import { type RecoveryStats, UNINGESTED_MAX } from "../../recovery-numbers.ts";
import type { RedriveStore } from "../../redrive.ts";
import { nowMs, type State } from "../state.ts";
import { expiredExecutions, latestOf, listCandidates, reopen, write } from "./candidates.ts";
import { carriedBy } from "./carried.ts";
import { createDocuments } from "./documents.ts";
import { edit } from "./edit.ts";
import { groupOfMessage, groupView, listGroups, listOccurrences, rootOf } from "./groups.ts";
import { ingest, uningested, waiting } from "./ingest.ts";
import { look, lookAgain } from "./look.ts";
import { learn, outcomesOf, outcomesOfAll } from "./outcomes.ts";
import { listProvenance, record } from "./provenance.ts";
import { createMemory, type Memory } from "./records.ts";
import { change, claim, find, get, items, keep, list, next, start } from "./redrives.ts";
import { merge, moveOccurrences, split } from "./regroup.ts";
import { preview } from "./select.ts";
import { send } from "./send.ts";

/** `alive` throws when the store is closed. */
export function createMemoryRecovery(state: State, alive: () => void): RecoveryStore {
  const memory = createMemory(state);
  const on =
    <A extends unknown[], T>(call: (memory: Memory, ...args: A) => T) =>
    async (...args: A): Promise<T> => {
      alive();
      return call(memory, ...args);
    };
  const view = (row: ReturnType<typeof rootOf>) => (row ? groupView(memory, row) : null);
  return {
    documents: createDocuments(memory, alive),
    redrives: redriveStore(on),
    ingest: on(ingest),
    uningested: on(uningested),
    group: on((_, groupId) => view(memory.groups.get(groupId))),
    groupOf: on((_, by) => {
      if ("messageId" in by) return view(groupOfMessage(memory, by.messageId));
      const id = "failureMatchId" in by ? memory.matches.get(by.failureMatchId) : memory.fingerprints.get(by.fingerprint);
      return view(id === undefined ? undefined : rootOf(memory, id));
    }),
    groups: on(listGroups),
    occurrences: on(listOccurrences),
    merge: on(merge),
    split: on(split),
    moveOccurrences: on((_, from, to, ids) => moveOccurrences(memory, from, to, ids)),
    candidate: on((_, candidateId) => memory.candidates.get(candidateId) ?? null),
    candidateOf: on(latestOf),
    candidates: on(listCandidates),
    write: on(write),
    reopen: on(reopen),
    expiredExecutions: on(expiredExecutions),
    provenance: on(listProvenance),
    note: on((_, lines, at) => record(memory, lines, new Date(nowMs(state, at)))),
    outcomes: on(outcomesOf),
    learn: on((_, learned, halfLifeMs, at) => learn(memory, learned, halfLifeMs, nowMs(state, at))),
    stats: on(stats),
  };
}

function redriveStore(
  on: <A extends unknown[], T>(call: (memory: Memory, ...args: A) => T) => (...args: A) => Promise<T>,
): RedriveStore {
  return {
    preview: on(preview),
    start: on(start),
    get: on(get),
    find: on(find),
    list: on(list),
    items: on(items),
    change: on(change),
    claim: on(claim),
    keep: on(keep),
    next: on(next),
    send: on(send),
    look: on(look),
    lookAgain: on(lookAgain),
    edit: on(edit),
    carried: on((memory, ids: readonly string[]) => ids.flatMap((id) => carriedBy(memory, id) ?? [])),
    origin: on(({ origins }, messageId) => origins.get(messageId) ?? null),
  };
}

function stats(memory: Memory, except: readonly string[]): RecoveryStats {
  const groups = [...memory.groups.values()].filter(({ mergedInto }) => mergedInto === null);
  const decisions = { pending: 0, approved: 0, rejected: 0 };
  const evaluations = { unevaluated: 0, evaluating: 0, evaluated: 0, failed: 0 };
  const executions = { pending: 0, executing: 0, succeeded: 0, failed: 0, rolled_back: 0, skipped: 0, unknown: 0 };
  for (const { decision, evaluationStatus, executionStatus } of memory.candidates.values()) {
    decisions[decision]++;
    evaluations[evaluationStatus]++;
    executions[executionStatus]++;
  }
  return {
    groups: groups.length,
    openGroups: groups.filter((row) => groupView(memory, row).openMessages > 0).length,
    occurrences: groups.reduce((sum, { occurrenceCount }) => sum + occurrenceCount, 0),
    decisions,
    evaluations,
    executions,
    outcomes: outcomesOfAll(memory),
    uningested: Math.min(waiting(memory, except).length, UNINGESTED_MAX),
  };
}
