/**
 * Conservation, wired: the store's witness, and every place beside the store that this process knows: usage, the archive, the journal and the
 * secondary store of the ladder, and what the caller adds.
 */
import { createArchive } from "../archive/archive.ts";
import { compareArchive } from "../archive/beside.ts";
import { errorText } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import { type Beside, conservationOf, type Found } from "../store/conservation.ts";
import { type Home, homeOf } from "../store/home.ts";
import { readJournal } from "../store/journal/read-journal.ts";
import type { Store } from "../store/store.ts";
import { usagePlace } from "../verify/usage.ts";
import { createVerify, type Place, type Verify } from "../verify/verify.ts";
import { fileWitness } from "../verify/witness.ts";
import type { RetentionOptions } from "./maintenance-jobs.ts";
import type { FallbackOptions } from "./open-fallback.ts";

export interface VerifyOptions {
  /** A file outside of the store to which each pass appends where the store stands; absent: there is no witness. */
  readonly witness?: string | null | undefined;
  /** Further places that are held against the store. */
  readonly places?: readonly Place[] | undefined;
}

type Options = Pick<FallbackOptions, "journal" | "secondary"> &
  Pick<RetentionOptions, "archiveSealKey"> & { readonly verify?: VerifyOptions | undefined };

export function openVerify(
  options: Options,
  parts: { readonly store: Store; readonly clock: Clock; readonly events: Events; readonly random: Random },
): Verify {
  const { witness = null, places = [] } = options.verify ?? {};
  const home = homeOf(parts.store);
  const { journal, secondary } = options;
  const beside = [
    ...(home ? [usagePlace(home), archivePlace(home, parts.random, options.archiveSealKey)] : []),
    ...(journal ? [journalPlace(journal.directory, "sealKey" in journal ? journal.sealKey : undefined)] : []),
    ...(secondary ? [secondaryPlace(secondary)] : []),
    ...places,
  ];
  return createVerify({ ...parts, witness: witness === null ? null : fileWitness(witness), places: beside });
}

const archivePlace = (home: Home, random: Random, sealKey: string | undefined): Place => ({
  name: "archive",
  look: compareArchive(createArchive({ home, random, sealKey })),
});

/** What waits in it is on its way up and no divergence; what cannot be read back is one. */
const journalPlace = (directory: string, sealKey: string | undefined): Place => ({
  name: "journal",
  async look() {
    const { entries, damage } = await readJournal({ directory, sealKey });
    // A torn tail was promised to nobody.
    const corrupt = damage.filter(({ kind }) => kind === "corrupt_record");
    const [lost, unread] = [corrupt.length, entries.filter(({ state }) => state === "unreadable")];
    const files = [...new Set(corrupt.map(({ file, offset }) => `${file} at ${offset}`))];
    const found: Found[] =
      lost === 0 ? [] : [{ kind: "journal_damaged", count: lost, ids: [], detail: files.slice(0, 5).join(", ") }];
    const unknown =
      unread.length === 0 ? null : `${unread.length} entries of ${directory} cannot be read with this MAKEGOOD_SEAL_KEY`;
    return { found, unknown };
  },
});

/** The second rung has accounts of its own: what they say is said of the whole. */
const secondaryPlace = (secondary: Store): Place => ({
  name: "secondary",
  async look(reach): Promise<Beside> {
    const conservation = conservationOf(secondary);
    if (!conservation) return { found: [], unknown: null };
    try {
      await conservation.pass({ reach, ...(reach === "slice" ? { budgetMs: 100 } : {}) });
      const { divergences, state, reason } = await conservation.conclude({});
      return { found: divergences, unknown: state === "unknown" ? reason : null };
    } catch (error) {
      return { found: [], unknown: errorText(error) };
    }
  },
});
