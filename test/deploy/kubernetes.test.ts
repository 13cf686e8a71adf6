/**
 * The Kubernetes manifests as `kubectl kustomize` prints them, held against the API's own models, against DA-21 and against the product: its
 * settings, its drain, its addresses, its metrics.
 */
import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { ADDRESSES } from "../../src/contract/addresses.ts";
import { DEFAULTS } from "../../src/message/limits.ts";
import { SETTINGS } from "../../src/server/config/settings.ts";
import { startTestServer } from "../server/support.ts";
import { kustomized, OVERLAYS } from "./kustomized.ts";
import { faultsOf, type Manifest, podsOf } from "./manifest-faults.ts";

const built = new Map<string, Manifest[]>();
const everyOne = () => [...built.values()].flat();
const containers = (of: readonly Manifest[] = everyOne()) => of.flatMap((one) => podsOf(one)?.spec.containers ?? []);

beforeAll(async () => {
  for (const overlay of OVERLAYS) built.set(overlay, await kustomized(overlay));
}, 60_000);

describe("the manifests", () => {
  it.each(OVERLAYS)(
    "DA-21: %s is valid: selectors find their pods, every mount has a volume, all is probed and confined",
    (overlay) => {
      expect(faultsOf(built.get(overlay) ?? [])).toEqual([]);
    },
  );

  it("DA-21: what was wrong with the seed's manifests is found, each by itself", () => {
    const broken = (change: (serve: Manifest, all: Manifest[]) => void): string => {
      const all = structuredClone(built.get("base") ?? []);
      change(
        all.find((one) => one.kind === "Deployment"),
        all,
      );
      return faultsOf(all).join("; ");
    };
    const pod = (serve: Manifest) => podsOf(serve).spec;
    expect(broken((serve) => delete serve.spec.selector)).toMatch(/selector/);
    expect(broken((serve) => delete podsOf(serve).metadata.labels)).toMatch(/does not find its own pods/);
    expect(broken((serve) => pod(serve).volumes.pop())).toMatch(/mounts tmp, and there is no such volume/);
    expect(broken((serve) => pod(serve).containers[0].volumeMounts.pop())).toMatch(/volume tmp and mounts it nowhere/);
    expect(broken((serve) => delete pod(serve).containers[0].livenessProbe)).toMatch(/no livenessProbe/);
    expect(broken((serve) => delete pod(serve).containers[0].resources)).toMatch(/no bounds of memory/);
    expect(broken((serve) => delete pod(serve).securityContext)).toMatch(/may run as root/);
    expect(broken((serve) => (pod(serve).containers[0].livenessProbs = {}))).toMatch(/the API has no .*livenessProbs/);
    expect(broken((serve) => (serve.spec.replicas = "two"))).toMatch(/replicas/);
    expect(broken((_, all) => (all.find(({ kind }) => kind === "Service").spec.selector = { app: "other" }))).toMatch(
      /selects no pod/,
    );
  });

  it("DA-21: nobody is let in without a password, and nothing is said in clear", () => {
    const ours = containers().filter(({ image }) => image.startsWith("makegood:"));
    expect(ours.length).toBeGreaterThan(0);
    const secret = Object.values(SETTINGS).flatMap((one) => ("secret" in one && one.secret ? [one.env] : []));
    for (const { env, args } of ours) {
      const names = (env ?? []).map(({ name }: Manifest) => name);
      expect(names.filter((name: string) => secret.includes(name as never))).toEqual([]);
      if (args[0] === "serve") expect(names).toContain("MAKEGOOD_TOKENS_FILE");
    }
    const redis = built.get("redis") ?? [];
    const file = redis.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name.startsWith("redis-durable"));
    expect(file.data["redis-durable.conf"]).toMatch(/^port 0$[\s\S]*^tls-port 6380$[\s\S]*^aclfile /m);
    const postgres = containers(built.get("postgres")).find(({ name }) => name === "postgres");
    expect(postgres.args).toEqual(expect.arrayContaining(["ssl=on"]));
  });

  it("every setting is one that the product has", () => {
    const known = new Set(Object.values(SETTINGS).flatMap(({ env }) => [env, `${env}_FILE`]));
    const others = ["NODE_EXTRA_CA_CERTS", "REDIS_ADDR", "DATA_STORAGE_URL", "CONSUMER_GROUP", "CONSUMER_NAME"];
    const given = containers()
      .filter(({ image }) => image.startsWith("makegood:"))
      .flatMap(({ env }) => (env ?? []).map(({ name }: Manifest) => name));
    const mapped = everyOne().flatMap((one) =>
      one.kind === "ConfigMap" && !one.data["redis-durable.conf"] ? Object.keys(one.data) : [],
    );
    expect([...given, ...mapped].filter((name) => !known.has(name) && !others.includes(name))).toEqual([]);
  });

  it("a pod has as long to stop as the product takes: until no request comes, the drain, the close", () => {
    const CLOSE_S = 15;
    const pods = everyOne().flatMap((one) =>
      podsOf(one)?.spec.containers[0].image.startsWith("makegood:") ? [podsOf(one).spec] : [],
    );
    for (const {
      terminationGracePeriodSeconds,
      containers: [{ lifecycle }],
    } of pods) {
      // Nobody sends a worker requests, so it begins at once.
      const preStopS = Number(lifecycle?.preStop.exec.command[1] ?? 0);
      expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(preStopS + DEFAULTS.drainMs / 1_000 + CLOSE_S);
    }
    const drains = everyOne().flatMap((one) => (one.data?.MAKEGOOD_DRAIN_MS ? [Number(one.data.MAKEGOOD_DRAIN_MS)] : []));
    expect(new Set(drains)).toEqual(new Set([DEFAULTS.drainMs]));
  });

  it("probes ask addresses that there are, under a Host that is answered", () => {
    const open = Object.values(ADDRESSES).map(([, path]) => path);
    const map = (built.get("base") ?? []).find(({ kind }) => kind === "ConfigMap");
    const asked = containers().flatMap((one) => [
      one.startupProbe.httpGet,
      one.livenessProbe.httpGet,
      one.readinessProbe.httpGet,
    ]);
    for (const probe of asked.filter((one) => one !== undefined)) {
      expect(open).toContain(probe.path);
      const host = probe.httpHeaders?.find(({ name }: Manifest) => name === "Host")?.value;
      expect(map.data.MAKEGOOD_HOSTS.split(",")).toContain(host);
    }
  });

  it("AUD-31: the audit worker has the seed's names and bounds, and three of it run when more than 5,000 wait", async () => {
    const all = built.get("audit") ?? [];
    const worker = podsOf(all.find(({ metadata }) => metadata.name === "audit-retry-worker")).spec.containers[0];
    const names = worker.env.map(({ name }: Manifest) => name);
    expect(names).toEqual(expect.arrayContaining(["REDIS_ADDR", "DATA_STORAGE_URL", "CONSUMER_GROUP", "CONSUMER_NAME"]));
    expect(worker.resources).toEqual({ requests: { cpu: "100m", memory: "128Mi" }, limits: { cpu: "200m", memory: "256Mi" } });
    const { minReplicas, maxReplicas, metrics } = all.find(({ kind }) => kind === "HorizontalPodAutoscaler").spec;
    expect([minReplicas, maxReplicas]).toEqual([1, 3]);
    const target = Number(metrics[0].external.target.value);
    /** What an autoscaler comes to, step by step: as many as the ratio says, nothing within a tenth of it. */
    const settles = (depth: number, replicas = 1): number => {
      const ratio = depth / target;
      const next =
        Math.abs(ratio - 1) <= 0.1 ? replicas : Math.min(maxReplicas, Math.max(minReplicas, Math.ceil(replicas * ratio)));
      return next === replicas ? replicas : settles(depth, next);
    };
    expect([settles(0), settles(4_999), settles(5_001), settles(50_000), settles(100, 3)]).toEqual([1, 1, 3, 3, 1]);
  });

  it("autoscalers read what is exported", async () => {
    const server = await startTestServer();
    const text = await (await server.api("/metrics")).text();
    await server.close();
    const read = everyOne().flatMap((one) => (one.kind === "HorizontalPodAutoscaler" ? one.spec.metrics : []));
    expect(read.length).toBeGreaterThan(0);
    for (const { external } of read) expect(text).toContain(`# TYPE ${external.metric.name} gauge`);
    const rules = await readFile(new URL("../../deploy/kubernetes/adapter-rules.yaml", import.meta.url), "utf8");
    for (const { external } of read) expect(rules).toContain(external.metric.name);
  });
});
