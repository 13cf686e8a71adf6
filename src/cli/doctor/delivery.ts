/**
 * The doctor's look at who delivers: topics with messages waiting that no worker serves, or that those who would cannot deliver.
 */

import { servedNow } from "../../client/standing.ts";
import { errorText } from "../../message/errors.ts";
import { unservedTopics } from "../../server/findings.ts";
import type { Store } from "../../store/store.ts";
import { type Finding, finding } from "./finding.ts";

const SHOWN = 20;

/** Only reads; the store need not be opened for it. */
export async function checkDelivery(store: Pick<Store, "counts" | "topics">): Promise<Finding[]> {
  try {
    const [counts, topics, served] = await Promise.all([store.counts(), store.topics.list(), servedNow(store)]);
    const found = unservedTopics({ counts, topics, served });
    if (found.length === 0) return [finding("delivery", "ok", "every topic with messages waiting is served")];
    const more = found.length - SHOWN;
    // Nobody at work may be what is wanted just now; a worker that is there and cannot is not.
    const shown = found.slice(0, SHOWN).map(({ topic, code, reason }) => {
      return finding("delivery", code === "no_worker" ? "warn" : "fail", `${topic} is not served: ${code}: ${reason}`);
    });
    return more > 0 ? [...shown, finding("delivery", "warn", `and ${more} more topics are not served`)] : shown;
  } catch (error) {
    return [finding("delivery", "warn", `could not be looked at: ${errorText(error)}`)];
  }
}
