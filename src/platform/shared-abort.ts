/**
 * An abort that many wait for at once: without a limit of listeners, because Node takes more than ten for a leak and says so on the
 * stderr of the program that uses us.
 */
import { setMaxListeners } from "node:events";

export function sharedAbort(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
