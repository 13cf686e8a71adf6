/**
 * Conservation of the PostgreSQL store: the cases of every store, and what only this one has: days, and dead letters that are opened again.
 */
import { expect, it } from "vitest";
import { conservationCases, kinds, sealedHour } from "./cases.ts";
import { verifyScene } from "./scene.ts";

conservationCases(verifyScene, (scene) => {
  it("counts a dead letter that was opened again as live", async () => {
    await scene().everything();
    await scene().verify();
    const reopened = await scene().client.query("select id::text from dead_letter where resolution = 1 limit 1");
    await scene().store.home.transaction("test", ({ intervene }) =>
      intervene("reopen", [{ id: reopened.rows[0].id }], { actor: "test", reason: null }, {}),
    );
    expect(await scene().verify()).toMatchObject({ state: "whole", totals: { accepted: 28, resolved: 0, live: 21 } });
  });

  it("finds a partition that was dropped by hand", async () => {
    await sealedHour(scene());
    await scene().accept(3);
    const day = await scene().client.query(
      "select tableoid::regclass::text as name from message order by created_at desc limit 1",
    );
    await scene().settle(await scene().claim(3));
    await scene().verify();
    await scene().harm(`drop table ${day.rows[0].name}`);
    expect(kinds(await scene().verify())).toContain("day_dropped");
  });
});
