/** What topics ask for that cannot be: nobody serves them, an attempt may outlast its lease, the receiver cannot be reached from here. */
import { errorText } from "../message/errors.ts";
import { CARRIERS, type SinkConfig, type TopicRecord } from "../message/topic.ts";
import { leaseProblem } from "../message/validate-topic.ts";
import { unservedTopics } from "../server/health.ts";
import { levelsOf } from "../server/measured.ts";
import { type AddressGuard, certificateOf, createAddressGuard, guardedConnector } from "../sink/address-guard.ts";
import { type Examined, examined } from "../store/shared/examined.ts";
import type { Store } from "../store/store.ts";
import { endingSoon } from "./ending-soon.ts";

const SHOWN = 20;

/** So many lines, and one that counts the rest. */
function shown(name: string, found: readonly Examined[], rest: string, good: string): Examined[] {
  if (found.length === 0) return [examined(name, true, good)];
  const more = found.length - SHOWN;
  return more > 0 ? [...found.slice(0, SHOWN), examined(name, false, `and ${more} more ${rest}`, "warn")] : [...found];
}

/** `dial`: addresses that sinks may use beside public ones; null: receivers are left alone. */
export async function examineTopics(
  store: Pick<Store, "counts" | "topics">,
  dial: readonly string[] | null,
): Promise<Examined[]> {
  try {
    const levels = await levelsOf(store);
    const unserved = unservedTopics(levels).map(({ topic, code, reason }) => {
      // Nobody at work may be what is wanted just now; a worker that is there and cannot is not.
      return examined("delivery", false, `${topic} is not served: ${code}: ${reason}`, code === "no_worker" ? "warn" : "fail");
    });
    return [
      ...shown("delivery", unserved, "topics are not served", "every topic with messages waiting is served"),
      ...shown("leases", levels.topics.flatMap(outlasting), "topics", "every attempt ends before its lease does"),
      ...(dial === null ? [] : await examineReceivers(levels.topics, createAddressGuard({ allow: dial }))),
    ];
  } catch (error) {
    return [examined("delivery", false, `could not be looked at: ${errorText(error)}`, "warn")];
  }
}

const sinksOf = (topic: TopicRecord): SinkConfig[] => [topic.sink, ...CARRIERS.flatMap((carrier) => topic[carrier] ?? [])];

/** Refused when it is saved; found here in what an earlier version or another program wrote. */
function outlasting(topic: TopicRecord): Examined[] {
  return sinksOf(topic).flatMap((sink) => {
    const problem = leaseProblem(sink, topic.leaseMs);
    return problem === null ? [] : [examined("leases", false, `${topic.name}: timeout ${problem}`)];
  });
}

const ORIGINS_MAX = 1_000;
const AT_ONCE = 20;
const DIAL_MS = 3_000;

/** Each origin once: its name is resolved and a connection made, with TLS where it is https, and ended. Nothing is sent. */
async function examineReceivers(topics: readonly TopicRecord[], guard: AddressGuard): Promise<Examined[]> {
  const users = new Map<string, { readonly url: URL; readonly trusted: boolean; readonly topic: string }>();
  for (const topic of topics) {
    for (const { url, trusted = false } of sinksOf(topic)) {
      const parsed = url === undefined || !URL.canParse(url) ? null : new URL(url);
      if (parsed !== null) users.set(`${trusted} ${parsed.origin}`, { url: parsed, trusted, topic: topic.name });
    }
  }
  const asked = [...users.values()].slice(0, ORIGINS_MAX);
  const found: Examined[] = [];
  const next = asked.values();
  const dialler = async (): Promise<void> => {
    for (const { url, trusted, topic } of next) {
      const error =
        (await dialled(url, trusted ? guard.trusting : guard)) ?? endingSoon("its certificate", certificateOf(guard, url.href));
      if (error !== null) found.push(examined("receivers", false, `${url.origin} (${topic}): ${error}`, "warn"));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, dialler));
  const left = users.size - asked.length;
  const rest = left > 0 ? [examined("receivers", false, `${left} more receivers were not dialled`, "warn")] : [];
  return [...shown("receivers", found, "receivers", `${asked.length} can be reached`), ...rest];
}

function dialled(url: URL, guard: AddressGuard): Promise<string | null> {
  const { hostname, host, protocol } = url;
  const port = url.port || (protocol === "https:" ? "443" : "80");
  return new Promise((resolve) => {
    guardedConnector(guard, { connectTimeoutMs: DIAL_MS })({ hostname, host, protocol, port }, (error, socket) => {
      socket?.destroy();
      resolve(error === null ? null : errorText(error));
    });
  });
}
