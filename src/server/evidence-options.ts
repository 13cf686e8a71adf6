/** Keys and the copy of tamper evidence, as the configuration names them. */
import { access } from "node:fs/promises";
import { resolve } from "node:path";
import type { EvidenceOptions } from "../evidence/evidence.ts";
import { addKey, readKeys } from "../evidence/key-file.ts";
import { type Copied, fileCopy, type Outside, toldCopy } from "../evidence/outside.ts";
import { MakegoodError } from "../message/errors.ts";
import { LOG_LEVELS, type Log } from "../observe/log.ts";
import type { Clock } from "../platform/clock.ts";
import { systemRandom } from "../platform/random.ts";
import { createPoster } from "../sink/poster.ts";
import type { Config } from "./config/config.ts";

const POST_MS = 10_000;

/** `makes`: a key that is named and not there is made; one that only looks makes nothing and trusts none then. */
export async function evidenceOptions(config: Config, log: Log, clock: Clock, makes: boolean): Promise<EvidenceOptions> {
  return { keys: await keysOf(config, log, makes), outside: outsideOf(config, log, clock) };
}

async function keysOf({ evidence_key_file: path }: Config, log: Log, makes: boolean) {
  if (path === null) return [];
  const isThere = await access(path).then(
    () => true,
    () => false,
  );
  if (isThere) return readKeys(path);
  if (!makes) return [];
  const keys = await addKey(path, systemRandom);
  log.info("an evidence key was made: keep its public part where the database cannot reach", { path, key: keys[0]?.verifier });
  return keys;
}

function outsideOf({ evidence_copy: where, log_level }: Config, log: Log, clock: Clock): Outside | undefined {
  if (where === "none") return undefined;
  if (/^https?:\/\//.test(where)) return postedCopy(where, clock);
  if (where !== "log") return fileCopy(resolve(where));
  // A line that the level hides is no copy.
  const isShown = LOG_LEVELS.indexOf(log_level) <= LOG_LEVELS.indexOf("info");
  return isShown ? toldCopy(where, (copied) => log.info("evidence", { ...copied })) : undefined;
}

function postedCopy(url: string, clock: Clock): Outside {
  const poster = createPoster({ url, timeoutMs: POST_MS, trusted: true }, { clock });
  const place = new URL(url).origin;
  return toldCopy(place, async (copied: Copied) => {
    const context = { signal: new AbortController().signal, timeoutMs: POST_MS };
    const answer = await poster.post(JSON.stringify(copied), ["content-type", "application/json"], context);
    if (answer.kind !== "answered" || answer.status >= 300)
      throw new MakegoodError(
        "store_unavailable",
        `${place} did not take the copy (${answer.kind === "answered" ? answer.status : answer.kind})`,
      );
  });
}
