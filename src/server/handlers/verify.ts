/** Conservation, shown and started. A pass goes on when it takes longer than a caller should wait. */
import { conservation } from "../../contract/verify.ts";
import { within } from "../../platform/clock.ts";
import { isUuid } from "../../platform/ids.ts";
import type { ConservationReport } from "../../store/conservation.ts";
import { meaningOf } from "../../verify/meanings.ts";
import { json } from "../http.ts";
import { wireOf } from "../json/wire.ts";
import type { Kernel } from "../kernel.ts";
import type { Handlers } from "./handlers.ts";

/** No address answers later than a second; who asked looks again. */
const WAIT_MS = 800;

function shown({ clock }: Kernel, report: ConservationReport | null, running: boolean) {
  const now = new Date(clock.wallMs());
  const never = {
    state: "unknown",
    reason: "no pass has been made yet",
    since: now,
    pass: 0,
    passedAt: null,
    comparedAt: null,
  } as const;
  const { divergences, ...rest } = report ?? { ...never, totals: null, divergences: [], divergencesTotal: 0, limits: [] };
  const explained = divergences.map((one) => ({ ...one, ...meaningOf(one.kind) }));
  return wireOf(conservation, { ...rest, divergences: explained, running } as never);
}

export const VERIFY: Handlers<"showConservation" | "verify" | "findIds"> = {
  async showConservation(_, kernel) {
    // Asked first: a pass that ends meanwhile may have left another report than the one that was read.
    const running = kernel.mg.verify.running();
    return json(200, shown(kernel, await kernel.mg.verify.last(), running));
  },
  async verify({ body }, kernel) {
    const { verify } = kernel.mg;
    const run = verify.run({ reach: body.full ? "full" : "whole" });
    const done = await within(
      kernel.clock,
      run.then(() => true),
      WAIT_MS,
    );
    return done ? json(200, shown(kernel, await run, verify.running())) : json(202, shown(kernel, await verify.last(), true));
  },
  async findIds({ body }, { mg }) {
    const known = body.ids.filter((id) => isUuid(id.toLowerCase()));
    const states = new Map((await mg.verify.whereabouts(known)).map((state, i) => [known[i], state]));
    return json(200, { data: body.ids.map((id) => ({ id, state: states.get(id) ?? "unknown" })) });
  },
};
