/** The addresses of conservation: how it stands, a pass by hand, and where single ids are. */
import { z } from "zod";
import { body, route, routes, shows, takes } from "./route.ts";
import * as v from "./values.ts";

const STATES = ["whole", "broken", "unknown"] as const;
export const WHEREABOUTS = ["unknown", "retired", "live", "delivered", "dead", "resolved", "discarded"] as const;
export const IDS_MAX = 5_000;

const divergence = z.strictObject({
  kind: z.string(),
  means: z.string(),
  remedy: z.string(),
  ...v.fields(z.string().nullable(), "topic", "tenant_id", "hour", "detail"),
  count: z.int().describe("how many messages"),
  ids: z.array(z.string()).describe("at most a hundred of them"),
  found_at: z.string(),
});

const numbers = v.fields(z.int(), "accepted", "delivered", "resolved", "discarded", "archived", "live", "buckets", "sealed");

export const conservation = v.shape("Conservation", {
  state: z.enum(STATES).describe("unknown: not proven, which is not whole"),
  reason: z.string().nullable().describe("what could not be proven"),
  since: z.string(),
  pass: z.int(),
  passed_at: z.string().nullable(),
  compared_at: z.string().nullable().describe("when the last comparison of all live ids began"),
  totals: z.strictObject({ ...numbers, oldest_open_hour: z.string().nullable() }).nullable(),
  divergences_total: z.int(),
  divergences: z.array(divergence),
  limits: z.array(z.string()).describe("what this store cannot prove"),
  running: z.boolean().describe("a pass is under way in the process that answers"),
});

const ids = v.list(v.text(), IDS_MAX, "ids");
const found = v.shape("Whereabouts", { data: z.array(z.strictObject({ id: z.string(), state: z.enum(WHEREABOUTS) })) });
const RUN = "Compare everything that is not sealed; full: what is sealed, too. 202: it takes longer, look again";
const full = v.optional(v.flag().describe("also what is sealed and still here"));

export const VERIFY_ROUTES = routes({
  showConservation: shows(
    "Whether everything that was accepted is accounted for, as the last pass of any process found it",
    conservation,
  ),
  verify: takes("operate", RUN, { 200: conservation, 202: conservation }, body("intervention", v.object({ full }))),
  findIds: route("read", "Where these messages are, for a producer's own list", found, {
    body: body("recovery", v.object({ ids })),
  }),
});
