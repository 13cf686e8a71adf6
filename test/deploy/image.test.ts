/**
 * The image as far as it can be known without a base image: the Dockerfile's own steps are run in roots of their own, and what comes out is
 * started as its user, asked by its own health check and stopped. In the run the packages of this repository stand for `npm ci` and what
 * prunes them; the soak (`npm run soak:image`) runs those, too. Needs root, or there is no root of its own to be had.
 */
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { until, workspace } from "../support/processes.ts";
import { allowedBy, type Image, inside, instructionsOf, play } from "./dockerfile.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const SOAK = process.env.MAKEGOOD_SOAK === "1";
const schema = freshSchema();
let folder = "";
afterAll(async () => {
  await dropSchema(schema);
  if (folder !== "") await rm(folder, { recursive: true, force: true });
});

describe("the image", () => {
  it("is read as Docker reads it, and what it does not know is refused", async () => {
    expect(instructionsOf("# a\nRUN one \\\n  && two\n\nUSER 1:1\n")).toEqual([
      { name: "RUN", rest: "one && two" },
      { name: "USER", rest: "1:1" },
    ]);
    expect(await allowedBy(ROOT)).toEqual(["package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json", "src"]);
  });

  it("its steps make a server that runs unprivileged, answers its health check, and drains", async () => {
    if (process.geteuid?.() !== 0) throw new Error("the image's steps need a root of their own: run this test as root");
    folder = await workspace();
    const modules = SOAK ? null : join(ROOT, "node_modules");
    const image: Image = await play(ROOT, folder, (step) => !SOAK && /^npm ci |npm prune/.test(step), modules);
    expect([image.user, image.entry, image.command]).toEqual(["1000:1000", ["node", "/app/dist/cli/main.js"], ["serve"]]);
    const port = String(await freePort());
    const env = {
      NODE_ENV: "production",
      DATABASE_URL: databaseUrl(),
      MAKEGOOD_SCHEMA: schema,
      MAKEGOOD_PORT: port,
      MAKEGOOD_LOG: "json",
    };
    const start = (argv: readonly string[]) =>
      inside({ root: image.root, modules: modules && "/app/node_modules", from: modules, argv, user: image.user, env });
    const asked = async () => (await (await start(image.healthcheck)).ended).code;
    expect(await asked()).toBe(1);
    const server = await start([...image.entry, ...image.command]);
    await server.fact(({ message }) => message === "listening");
    expect(await asked()).toBe(0);
    expect(await readFile(`/proc/${server.pid}/status`, "utf8")).toMatch(/^Uid:\s+1000\s/m);
    const probe = await start(["sh", "-c", "touch /app/written"]);
    expect((await probe.ended).code).not.toBe(0);
    expect((await server.end("SIGTERM")).code).toBe(0);
    await until("it is gone", () => server.over);
  }, 180_000);
});
