/**
 * The recovery seam in PostgreSQL: every write one transaction, on the store's own connections and with its own enqueue. It decides
 * nothing; what may follow what is the engine's, and the tables' own fences stand behind that.
 */
import type { RecoveryStore } from "../../recovery.ts";
import { createCandidateWrites } from "./candidate-write.ts";
import { createCandidates } from "./candidates.ts";
import { createCarried } from "./carried.ts";
import { createDocuments } from "./documents.ts";
import { createEdit } from "./edit.ts";
import { createGroups } from "./groups.ts";
import { createIngest } from "./ingest.ts";
import { createOutcomes } from "./outcomes.ts";
import { createProvenance } from "./provenance.ts";
import { createRedriveLook } from "./redrive-look.ts";
import { createRedriveRun } from "./redrive-run.ts";
import { createRedriveSend } from "./redrive-send.ts";
import { createRedriveStart } from "./redrive-start.ts";
import { createRegroup } from "./regroup.ts";
import type { RecoveryDb } from "./run.ts";

export function createPostgresRecovery(db: RecoveryDb): RecoveryStore {
  return {
    documents: createDocuments(db),
    redrives: {
      ...createRedriveStart(db),
      ...createRedriveRun(db),
      ...createRedriveSend(db),
      ...createRedriveLook(db),
      ...createEdit(db),
      ...createCarried(db),
    },
    ingest: createIngest(db),
    ...createGroups(db),
    ...createRegroup(db),
    ...createCandidates(db),
    ...createCandidateWrites(db),
    ...createProvenance(db),
    ...createOutcomes(db),
  };
}
