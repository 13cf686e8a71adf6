/** Every banned call, once. */
import { randomBytes, randomUUID } from "node:crypto";
import { env } from "node:process";
import { setTimeout as later } from "node:timers/promises";

export const now = Date.now();
export const today = new Date();
export const started = performance.now();
export const tick = process.hrtime.bigint();
setTimeout(() => undefined, 1);
globalThis.setInterval(() => undefined, 1);
setImmediate(() => undefined);
export const signal = AbortSignal.timeout(1);
export const chance = Math.random();
export const token = [randomBytes(8), randomUUID(), crypto.getRandomValues(new Uint8Array(8))];
console.log(env, later);
export const home = process.env.HOME;
process.exit(1);
