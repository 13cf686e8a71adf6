/**
 * The door `makegood/journal`: exports only.
 */
export type { Journal, JournalNote, JournalStats } from "../journal.ts";
export { createJournal, type JournalOptions } from "./journal.ts";
export { type JournalContents, type ListedEntry, readJournal } from "./read-journal.ts";
