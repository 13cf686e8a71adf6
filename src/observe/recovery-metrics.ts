/** The way into the recovery engine in numbers. The names are the seed's, every label is from a list. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Events, MakegoodEvent } from "./events.ts";

const EVALUATE = "recovery/evaluate";
const WAITING = ["pending", "processing"];

export function recoveryMetrics(events: Events, register: Registry) {
  const registers = [register];
  const ingested = new Counter({
    name: "recovery_ingest_total",
    help: "Failures taken in, by what came of it (accepted, duplicate, error) and where they came from.",
    labelNames: ["status", "source"],
    registers,
  });
  const seconds = new Histogram({
    name: "recovery_ingest_latency_seconds",
    help: "How long taking in a failure took.",
    labelNames: ["status"],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const duplicates = new Counter({
    name: "recovery_ingest_duplicates_total",
    help: "Failures that were counted before, by how that was known.",
    labelNames: ["detection_method"],
    registers,
  });
  const enqueued = new Counter({
    name: "recovery_ingest_enqueue_total",
    help: "Evaluations: queued in the same write as the failure, or not due.",
    labelNames: ["status"],
    registers,
  });
  const depth = new Gauge({
    name: "recovery_evaluation_queue_depth",
    help: "Evaluations that wait or are being made.",
    registers,
  });

  const counted = (event: MakegoodEvent): void => {
    if (event.type !== "recovery_ingest") return;
    const { status, source, count, queued, ms, detection } = event;
    ingested.inc({ status, source }, count);
    if (ms !== null) seconds.observe({ status }, ms / 1_000);
    if (status === "duplicate") duplicates.inc({ detection_method: detection ?? "idempotency_key" }, count);
    if (status !== "accepted") return;
    if (queued > 0) enqueued.inc({ status: "queued" }, queued);
    if (count > queued) enqueued.inc({ status: "not_due" }, count - queued);
  };
  return {
    /** The last known counts of the store. */
    levels(counts: readonly { readonly topic: string; readonly status: string; readonly count: number }[]): void {
      const waiting = counts.filter(({ topic, status }) => topic === EVALUATE && WAITING.includes(status));
      depth.set(waiting.reduce((total, { count }) => total + count, 0));
    },
    stop: events.on(counted),
  };
}
