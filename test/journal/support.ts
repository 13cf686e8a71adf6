/** Shared by the journal tests: directories that go away, and entries. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NewMessage } from "../../src/message/message.ts";
import { payloadHash } from "../../src/message/validate.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createJournal, type JournalOptions } from "../../src/store/journal/journal.ts";
import type { JournalNote } from "../../src/store/journal.ts";
import type { HandedDown } from "../../src/store/ladder/format/handed-down.ts";
import { atEnd } from "../support/at-end.ts";

const made: string[] = [];
const ids = createIds();

atEnd(async () => {
  for (const path of made.splice(0)) await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

export async function freshDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "makegood-journal-"));
  made.push(path);
  return path;
}

export function entry(fields: Partial<NewMessage> = {}): HandedDown {
  const id = fields.id ?? ids();
  const payload = fields.payload ?? JSON.stringify({ id });
  const key = fields.key ?? null;
  const message: NewMessage = {
    id,
    topic: "test/ladder",
    tenantId: null,
    key,
    payload,
    payloadHash: key === null ? "" : payloadHash(payload),
    delayMs: 0,
    priority: 0,
    orderingKey: null,
    traceparent: null,
    schemaVersion: null,
    ...fields,
  };
  return { message, atMs: Date.now() };
}

export async function openJournal(directory: string, options: Partial<JournalOptions> = {}) {
  const notes: JournalNote[] = [];
  const journal = createJournal({ directory, note: (note) => notes.push(note), ...options });
  await journal.open();
  return { journal, notes };
}

export const idsOf = (entries: readonly HandedDown[]): string[] => entries.map(({ message }) => message.id);
