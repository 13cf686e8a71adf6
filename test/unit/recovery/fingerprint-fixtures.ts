/**
 * Error families of our own making, each a text with ids, hosts, times and amounts that change from one failure to the next.
 * What a family is called is its label; two texts with one label must be one group, two labels never.
 */

const hex = (n: number, digits: number): string =>
  ((n * 2_654_435_761) % 2 ** 32).toString(16).padStart(8, "0").repeat(5).slice(0, digits);
const uuid = (n: number): string => `${hex(n, 8)}-${hex(n + 1, 4)}-4${hex(n + 2, 3)}-a${hex(n + 3, 3)}-${hex(n + 4, 12)}`;
const ip = (n: number): string => `10.${n % 200}.${(n * 7) % 250}.${(n * 13) % 250}`;
const pick = (n: number, words: readonly string[]): string => words[n % words.length] as string;
const USERS = ["alice", "bob", "carol", "dave", "erin", "mallory"];

export const FAMILIES: Readonly<Record<string, (n: number) => string>> = {
  refused: (n) => `connect ECONNREFUSED ${ip(n)}:${1024 + n}`,
  timeout: (n) => `request ${uuid(n)} to https://pay${n}.example.com/v1/charges?id=${n} timed out after ${n * 37}ms`,
  resetByPeer: (n) => `read ECONNRESET from node-${n}.cluster.local:${8000 + n} after ${n} bytes`,
  duplicateKey: (n) => `duplicate key value violates unique constraint "orders_pkey": Key (id)=(${n}) already exists.`,
  deadlock: (n) => `deadlock detected: process ${n} waits for ShareLock on transaction ${n * 11}; blocked by process ${n + 1}`,
  rateLimit: (n) => `429 Too Many Requests: quota of tenant ${pick(n, USERS)} exceeded, retry after ${n} seconds`,
  authExpired: (n) =>
    `token ${hex(n, 32)} expired at 2024-05-${String((n % 28) + 1).padStart(2, "0")}T10:00:${String(n % 60).padStart(2, "0")}Z`,
  missingFile: (n) => `ENOENT: no such file or directory, open '/var/data/tenant-${n}/batch_${n * 3}.json'`,
  noUser: (n) => `no active subscription for user ${pick(n, USERS)} in region eu-${n % 9}`,
  badJson: (n) => `Unexpected token } in JSON at position ${n}`,
  dns: (n) => `getaddrinfo ENOTFOUND api-${n}.partner${n % 5}.example.org`,
  tls: (n) =>
    `certificate of ${ip(n)} (host-${n}.example.net) expired on Fri Jun ${(n % 28) + 1} 07:07:${String(n % 60).padStart(2, "0")} 2023`,
  amount: (n) =>
    `charge of ${n}.${String(n % 100).padStart(2, "0")} EUR declined: card=****${1000 + n} code=${n % 90} live=${n % 2 === 0}`,
  tooLarge: (n) => `payload of ${n * 100} bytes (${n}.5 KB) is larger than 1 MB`,
  blocks: (n) => `replica lost blocks ${Array.from({ length: (n % 5) + 1 }, (_, i) => `blk_${n + i}`).join(" ")}`,
  mail: (n) => `mailbox ${pick(n, USERS)}${n}@mail${n}.example.com is full since ${n % 24}:${String(n % 60).padStart(2, "0")}`,
  moduleMissing: (n) => `class com.acme.plugin${n}.Loader could not be found in /opt/app/lib-${n}.jar`,
};

/** Pairs that read alike and are not: one word says what happened. */
export const MEANINGFUL: readonly (readonly string[])[] = [
  ["worker 7 started on host-1", "worker 7 stopped on host-1", "worker 9 paused on host-2", "worker 9 resumed on host-2"],
  ["login for alice from 10.0.0.1 accepted", "login for alice from 10.0.0.1 failed"],
  ["Link 5", "Port 5"],
  [
    "action android.intent.SCREEN_ON received now",
    "action android.intent.SCREEN_OFF received now",
    "action android.intent.TIME_TICK received now",
  ],
  [
    "job ended with java.io.IOException",
    "job ended with java.net.ConnectException",
    "job ended with java.lang.IllegalStateException",
  ],
  [
    "status=PENDING of charge",
    "status=FAILED of charge",
    "status=DONE of charge",
    "status=LOST of charge",
    "status=HELD of charge",
  ],
  ["connection opened", "connection closed", "connection refused"],
  ["failed to read block 5", "failed to write block 5", "failed to open block 5"],
  ["user created successfully", "user deleted successfully"],
  ["state changed from NEW to RUNNING for task_1", "state changed from RUNNING to FAILED for task_1"],
  ["GET /a/1 HTTP/1.1 returned 500", "POST /a/1 HTTP/1.1 returned 500"],
  ["card declined: insufficient funds", "card declined: stolen card"],
  ['{"error":"rate_limited","id":5}', '{"error":"invalid_key","id":5}'],
  ["payment ended code=5 by the issuer bank", "payment ended code=timeout by the issuer bank"],
  ["upstream request failed (504) on the second try", "upstream request failed (timeout) on the second try"],
  ["write failed with 0x80070005 while saving the journal", "write failed with timeout while saving the journal"],
  ["5 retries left before giving up on this message", "no retries left before giving up on this message"],
  ["request was sent with invalid host key", "request was sent with invalid host name"],
  ["thread pool is exhausted on this machine", "thread stack is exhausted on this machine"],
  ["login of user ann from 10.0.0.1 port 5 failed", "login of invalid user ann from 10.0.0.1 port 5 failed"],
];

/** Texts that must be one group although they do not have the same number of words. */
export const ONE_GROUP: readonly (readonly string[])[] = [
  ["close, 451 bytes sent, lifetime 00:01", "close, 18846 bytes (18.4 KB) sent, lifetime <1 sec"],
  ["delete blk_1", "delete blk_1 blk_-2 blk_3"],
  ["connection from 10.0.0.1 (a1.example.net) at 10:00:01", "connection from 10.0.0.2 () at 10:00:01"],
  ["lease of 10.0.0.1 expired and was given back", "lease of printer expired and was given back"],
  ["synchronized to 10.0.0.1, stratum 3", "synchronized to LOCAL(0), stratum 9"],
  ["queue 4f5a6b7c is full and refuses messages", "queue orders 7 is full and refuses messages"],
  ["object 4f5a6b is not reachable from root", "object fadeec is not reachable from root"],
  ["lease given to 0a:1b:2c:3d:4e:5f via eth0", "lease given to aa:bb:cc:dd:ee:ff via eth0"],
  ["no answer of thread main after 5 tries", "no answer of thread flusher after 9 tries"],
  ["relay=10.0.0.1 took mail of tenant", "relay=local took mail of tenant"],
  ["rotate nodes:node-[1-5 7] now", "rotate nodes:node-3 now", "rotate nodes:node-[2,4] now"],
  ["auth failure; rhost=10.0.0.1 user=root", "auth failure; rhost=  user=root"],
  ['acquire tag="View Lock" name=x', 'acquire tag="other" name=x'],
  ["ready=true,state=3", "ready=false,state=4"],
  ["since 2024-05-01 10:00:00 down", "since 2024-05-01T10:00:00Z down", "since Fri May 3 10:00:00 2024 down"],
];

export function sample(count: number): { label: string; text: string }[] {
  const out: { label: string; text: string }[] = [];
  for (let n = 1; n <= count; n++) for (const [label, make] of Object.entries(FAMILIES)) out.push({ label, text: make(n) });
  return out;
}
