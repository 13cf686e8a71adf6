/**
 * Looks like a violation everywhere and is none: Date.now(), console.log, job, e.g. process.exit in a comment. A store.ts in
 * the middle of a sentence ends nothing.
 */
import type { Timer } from "./timer.ts";

const text = "setTimeout(job, 1) from 'x'; export default import('../client/client.ts')";
const single = 'console.log("ack")';
const nested = `queue ${text} and ${`console.error(${single}) nack`} { process.exit(1) }`;
const regex = /console\.log\("task"\)[/"'`{]/g;
const half = text.length / 2 / 3;
const date = new Date(half);
const socket = { setTimeout: (ms: number) => ms, on: (timer: Timer) => timer };
socket.setTimeout(1);
const enqueue = (callback: () => void): void => callback();
export const all = [nested, regex, date, enqueue, "// @ts-ignore"];
