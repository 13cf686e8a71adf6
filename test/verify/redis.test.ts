/**
 * Conservation of the Redis store: the cases of every store, and what only this one has.
 */
import { describe, expect, it } from "vitest";
import { startRedis } from "../support/redis-server.ts";
import { conservationCases } from "./cases.ts";
import { redisVerifyScene } from "./redis-scene.ts";

const server = await startRedis();

conservationCases(
  () => redisVerifyScene(server.url),
  (scene) => {
    describe("x", () => {
      it("y", () => expect(scene()).toBeDefined());
    });
  },
);
