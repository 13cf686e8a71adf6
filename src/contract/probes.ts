/**
 * The addresses that machines and people look at first: alive, ready, health, numbers, the page, and this contract itself.
 */
import { z } from "zod";
import { routes } from "./route.ts";

const TEXT = { type: "text/plain" } as const;

export const PROBE_ROUTES = routes({
  showPage: { summary: "The page", permission: "read", answers: { 200: { type: "text/html" } }, errors: [] },
  live: { summary: "Whether the process runs", permission: "open", answers: { 200: TEXT }, errors: [] },
  ready: {
    summary: "Whether a message would be accepted now",
    permission: "open",
    query: z.looseObject({ verbose: z.string().optional().describe("say what was checked") }),
    answers: { 200: TEXT },
    errors: ["not_ready"],
  },
  health: {
    summary: "How everything stands, from the last known state and with its age",
    permission: "read",
    answers: { 200: z.looseObject({ status: z.string() }), 503: z.looseObject({ status: z.string() }) },
    errors: [],
  },
  metrics: { summary: "The numbers, for Prometheus", permission: "read", answers: { 200: TEXT }, errors: [] },
  readDocs: {
    summary: "This contract, to be read by people",
    permission: "read",
    answers: { 200: { type: "text/html" } },
    errors: [],
  },
  openApi: {
    summary: "This contract as OpenAPI 3.1",
    permission: "read",
    answers: { 200: z.looseObject({ openapi: z.string() }) },
    errors: [],
  },
});
