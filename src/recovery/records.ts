/** The records of the engine: every write is one transaction in which counts, ledger, messages and provenance change together. */
import type { Home } from "../store/home.ts";
import { createCandidates } from "./candidates/candidates-sql.ts";
import { createOutcomes } from "./confidence/outcomes-sql.ts";
import { createDocuments } from "./documents.ts";
import { createIngest } from "./failures/ingest.ts";
import { createReports } from "./failures/reports-sql.ts";
import { createGroupWrites } from "./groups/group-writes.ts";
import { createGroups } from "./groups/groups-sql.ts";
import { createRollingCounts } from "./groups/rolling-counts.ts";
import { createProvenance } from "./provenance.ts";
import { createEdit } from "./redrive/edit.ts";
import { createRedriveStart } from "./redrive/freeze.ts";
import { createRedriveLook } from "./redrive/look.ts";
import { createRedriveRun } from "./redrive/redrive-sql.ts";
import { createRedriveSend } from "./redrive/send.ts";

export type Records = ReturnType<typeof createRecords>;
export type RedriveRecords = Records["redrives"];

export function createRecords(home: Home) {
  return {
    documents: createDocuments(home),
    redrives: {
      ...createRedriveStart(home),
      ...createRedriveRun(home),
      ...createRedriveSend(home),
      ...createRedriveLook(home),
      ...createEdit(home),
    },
    ingest: createIngest(home),
    ...createReports(home),
    ...createGroups(home),
    ...createRollingCounts(home),
    ...createGroupWrites(home),
    ...createCandidates(home),
    ...createProvenance(home),
    ...createOutcomes(home),
  };
}
