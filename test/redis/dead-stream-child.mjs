// A process that works on a stream of dead letters and kills itself with SIGKILL before its call number `at` to Redis, the store or the
// files; 0: never. Which call that is follows from the work, so every step of it can be the last one.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { dist, url, database, schema, directory, op, at, stream, lengthMax } = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(dist, path)).href);
const [{ createMakegood }, { createPostgresStore }, redisDoor, { readRecoveryEntry }, { createIds }] = await Promise.all(
  ["index.js", "store/postgres/index.js", "store/redis/index.js", "presets/seed-streams.js", "platform/ids.js"].map(load),
);
const [{ createStreamFiles }, { systemRandom }] = await Promise.all(["archive/stream-files.js", "platform/random.js"].map(load));

let calls = 0;
const counted = (of) =>
  new Proxy(of, {
    get(target, name) {
      const member = target[name];
      if (typeof member !== "function") return member;
      return (...given) => {
        if (++calls === at) process.kill(process.pid, "SIGKILL");
        return member.apply(target, given);
      };
    },
  });

const raw = createPostgresStore({ url: database, schema });
const mg = await createMakegood({ store: raw, topics: [], recovery: false, log: "silent" });
const redis = await redisDoor.connectRedis(url);
const sealKey = "a secret of sixteen";
const files = directory ? counted(createStreamFiles({ directory, name: "recovery", sealKey, random: systemRandom })) : undefined;
const store = counted({ ...raw, topics: counted(raw.topics) });
const { accept } = counted({ accept: (messages) => mg.enqueueText(messages) });
const parts = { redis: counted(redis), stream, store, ids: createIds(), actor: "test", read: readRecoveryEntry, accept, files };
const work = {
  replay: () => redisDoor.replayDead(parts, { limit: 1_000 }),
  archive: () => redisDoor.archiveDead(parts),
  trim: () => redisDoor.trimDead(parts, lengthMax),
};
const done = await work[op]();
process.stdout.write(JSON.stringify({ ...done, calls }));
await redis.close();
await mg.close();
