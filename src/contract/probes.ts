/**
 * The addresses that machines and people look at first: alive, ready, health, numbers, the page, and this contract itself.
 */
import { z } from "zod";
import { route, routes } from "./route.ts";

const TEXT = { 200: { type: "text/plain" } } as const;
const HTML = { 200: { type: "text/html" } } as const;
const verbose = z.looseObject({ verbose: z.string().optional().describe("say what was checked") });
const health = z.looseObject({ status: z.string() });

export const PROBE_ROUTES = routes({
  showPage: route("read", "The page", HTML),
  live: route("open", "Whether the process runs", TEXT),
  ready: route("open", "Whether a message would be accepted now", TEXT, { query: verbose, errors: ["not_ready"] }),
  health: route("read", "How everything stands, from the last known state and with its age", { 200: health, 503: health }),
  metrics: route("read", "The numbers, for Prometheus", TEXT),
  readDocs: route("read", "This contract, to be read by people", HTML),
  openApi: route("read", "This contract as OpenAPI 3.1", { 200: z.looseObject({ openapi: z.string() }) }),
});
