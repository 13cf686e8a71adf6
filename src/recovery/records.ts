/**
 * The recovery seam in PostgreSQL: every write one transaction, on the store's own connections and with its own enqueue. It decides
 * nothing; what may follow what is the engine's, and the tables' own fences stand behind that.
 */
import type { RecoveryStore } from "./records-types.ts";
import { createCandidateWrites } from "./candidates/candidate-write.ts";
import { createCandidates } from "./candidates/candidates-sql.ts";
import { createCarried } from "./redrive/carried.ts";
import { createDocuments } from "./documents-sql.ts";
import { createEdit } from "./redrive/edit-sql.ts";
import { createGroups } from "./groups/groups-sql.ts";
import { createIngest } from "./failures/ingest.ts";
import { createOutcomes } from "./confidence/outcomes-sql.ts";
import { createProvenance } from "./provenance-sql.ts";
import { createRedriveLook } from "./redrive/look.ts";
import { createRedriveRun } from "./redrive/redrive-sql.ts";
import { createRedriveSend } from "./redrive/send.ts";
import { createRedriveStart } from "./redrive/freeze.ts";
import { createRegroup } from "./groups/regroup-sql.ts";
import type { RecoveryDb } from "../store/postgres/home.ts";

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
