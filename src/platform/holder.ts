/**
 * Who holds a leadership or a lock, as people read it: host, process and eight digits that tell apart two of one process, or two
 * processes whose containers share a name and a number.
 */
import { hostname } from "node:os";

/** Of an id that nobody else has. */
export function holderName(id: string): string {
  return `${hostname()}:${process.pid}:${id.replaceAll("-", "").slice(-8)}`;
}
