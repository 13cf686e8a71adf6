/** The append-only record: lines are added with the write they tell of, and never change. */
import type { NewProvenance, Paged, Provenance } from "../../recovery.ts";
import { type PageRequest, paged } from "./pages.ts";
import { type Memory, set } from "./records.ts";

export function record(memory: Memory, lines: readonly NewProvenance[], now: Date): void {
  for (const line of lines) {
    const provenanceId = ++memory.ids;
    set(memory, memory.provenance, provenanceId, {
      ...line,
      redriveId: line.redriveId ?? null,
      provenanceId,
      at: now,
    });
  }
}

export function listProvenance(
  memory: Memory,
  of: { readonly groupId?: number; readonly candidateId?: number; readonly redriveId?: string },
  page: PageRequest,
): Paged<Provenance> {
  const fits = (line: Provenance): boolean =>
    (of.groupId === undefined || of.groupId === line.groupId) &&
    (of.candidateId === undefined || of.candidateId === line.candidateId) &&
    (of.redriveId === undefined || of.redriveId === line.redriveId);
  return paged([...memory.provenance.values()].filter(fits), page, (line) => [line.provenanceId], -1);
}
