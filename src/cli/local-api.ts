/**
 * The API without a server: the same handlers on the store itself, opened for the duration of the command.
 */
import { userInfo } from "node:os";
import { createMakegood } from "../create.ts";
import { createLog } from "../observe/log.ts";
import { systemClock } from "../platform/clock.ts";
import { createApp } from "../server/app.ts";
import type { Config } from "../server/config/config.ts";
import { openStore } from "../server/open-store.ts";
import { kernelOf, makegoodOptions } from "../server/serve.ts";
import { type Api, apiOn } from "./api-on.ts";
import type { Io } from "./io.ts";

export async function localApi(io: Io, config: Config): Promise<Api> {
  const clock = systemClock;
  const log = createLog({ clock, format: "text", level: "warn", write: (line) => io.err(line) });
  const opened = await openStore({ config, log });
  try {
    const mg = await createMakegood(makegoodOptions(config, opened.store, clock));
    // A user who can open the store may clear away what a config file once declared and no longer does.
    const abandoned = (topic: string): boolean => !config.topics.some(({ definition }) => definition.name === topic);
    const kernel = kernelOf({ config, mg, log, clock, worker: null, draining: () => false, abandoned });
    const app = createApp({ kernel, tokens: [], anonymous: actor(), hosts: null });
    return apiOn("http://localhost", {}, app.fetch, async () => {
      await mg.close();
      await opened.release();
    });
  } catch (error) {
    await opened.release();
    throw error;
  }
}

/** Under whose name the history will show what was done here. */
function actor(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    return "cli";
  }
}
