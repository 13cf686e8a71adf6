/** The API without a server: the same handlers on the store itself; a command that only looks creates and migrates nothing. */
import { userInfo } from "node:os";
import { servedNow } from "../client/standing.ts";
import { createMakegood } from "../create.ts";
import { createLog, type Log } from "../observe/log.ts";
import { systemClock } from "../platform/clock.ts";
import { createApp } from "../server/app.ts";
import type { Config } from "../server/config/config.ts";
import { deadStreamsOf } from "../server/dead-streams.ts";
import { evidenceOptions } from "../server/evidence-options.ts";
import { kernelOf } from "../server/kernel.ts";
import { openStore } from "../server/open-store.ts";
import { makegoodOptions } from "../server/serve.ts";
import { holdsData } from "../store/postgres/index.ts";
import type { Store } from "../store/store.ts";
import type { Access } from "./conversation.ts";
import { type Io, Stop } from "./io.ts";

export async function openLocal(io: Io, config: Config, access: Access) {
  if (access !== "up") await refuseNowhere(config);
  const log = warnings(io);
  const opened = await openStore(config, log, undefined, access);
  try {
    const evidence = await evidenceOptions(config, log, systemClock, false);
    const options = { ...makegoodOptions(config, opened.store, systemClock), recoveryHome: opened.recoveryHome, evidence };
    const mg = await createMakegood(access === "look" ? { ...options, topics: [] } : options);
    const abandoned = (topic: string) => isAbandoned(mg.store, config, topic);
    const parts = { config, mg, log, clock: systemClock, worker: null, streams: deadStreamsOf(config, mg) };
    const kernel = kernelOf({ ...parts, draining: () => false, abandoned });
    const { fetch } = createApp({ kernel, tokens: [], anonymous: actor(), hosts: null });
    return { mg, fetch, close: () => mg.close().then(opened.release) };
  } catch (error) {
    await opened.release();
    throw error;
  }
}

export function warnings(io: Io): Log {
  return createLog({ clock: systemClock, format: "text", level: "warn", write: (line) => io.err(line) });
}

/** With nothing configured the store would be an embedded server in this folder: to look is no reason to make one. */
export async function refuseNowhere({ store, database_url, data_dir }: Config): Promise<void> {
  if (store !== "postgres" || database_url !== null || (await holdsData(data_dir))) return;
  const remedy = "set MAKEGOOD_URL to a running server, DATABASE_URL to its database, or MAKEGOOD_DATA_DIR to its data directory";
  throw new Stop(`there is no store to ask: ${data_dir} holds no data; ${remedy}; --init makes an empty store there`);
}

/** A user who can open the store may clear away what a file or code once declared, unless a worker serves it. */
async function isAbandoned(store: Store, config: Config, name: string): Promise<boolean> {
  if (config.topics.some(({ definition }) => definition.name === name)) return false;
  const [topic, served] = await Promise.all([store.topics.get(name), servedNow(store)]);
  return topic !== null && served.why(topic) !== null;
}

function actor(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    return "cli";
  }
}
