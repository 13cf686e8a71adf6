/**
 * What is wrong with a set of Kubernetes objects, before a cluster sees them: members that the API does not have or types that it refuses (by
 * npm's `kubernetes-models`), and what DA-21 had: selectors that find nothing, mounts without a volume, no probes, no confinement.
 */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

// biome-ignore lint/suspicious/noExplicitAny: objects as they come out of YAML; their types are what is checked here.
export type Manifest = any;
type Labels = Readonly<Record<string, string>>;

const load = createRequire(import.meta.url);

/** Every fault of every object, with its kind and name. */
export function faultsOf(all: readonly Manifest[]): string[] {
  return all.flatMap((one) => {
    const pods = podsOf(one) === null ? [] : [...ofPod(one, all), ...ofVolumes(one)];
    return [...ofModel(one), ...ofSelectors(one, all), ...pods].map((fault) => `${one.kind} ${one.metadata?.name}: ${fault}`);
  });
}

/** What the API refuses, and members it does not know: those that its check never reads. */
function ofModel(one: Manifest): string[] {
  const [group, version] = one.apiVersion.includes("/") ? one.apiVersion.split("/") : ["", one.apiVersion];
  const path = ["kubernetes-models", group, version, one.kind].filter((part) => part !== "").join("/");
  try {
    new (load(path)[one.kind])(one).validate();
  } catch (error) {
    return [(error as Error).message];
  }
  const title = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
  const schema = `IoK8sApi${title(group.replace(/\..*/, "") || "core")}${title(version)}${one.kind}`;
  const read = new Set<string>();
  load(join(dirname(load.resolve("kubernetes-models")), "_schemas", `${schema}.js`)).validate(watch(one, "", read));
  return namesIn(one, "")
    .filter((name) => !read.has(name))
    .map((name) => `the API has no ${name}`);
}

function watch(value: Manifest, at: string, read: Set<string>): Manifest {
  if (value === null || typeof value !== "object") return value;
  return new Proxy(value, {
    get(target, member) {
      if (typeof member === "symbol") return target[member];
      read.add(`${at}/${member}`);
      return watch(target[member], `${at}/${member}`, read);
    },
  });
}

function namesIn(value: Manifest, at: string): string[] {
  if (value === null || typeof value !== "object") return [];
  return Object.keys(value).flatMap((name) => [`${at}/${name}`, ...namesIn(value[name], `${at}/${name}`)]);
}

/** The pod that a workload makes, with its labels; null for what makes none. */
export const podsOf = (one: Manifest): Manifest => one.spec?.template ?? null;

const fits = (selector: Labels | undefined, labels: Labels | undefined): boolean =>
  Object.entries(selector ?? {}).every(([name, value]) => labels?.[name] === value);

function ofSelectors(one: Manifest, all: readonly Manifest[]): string[] {
  const pods = all.flatMap((other) => (podsOf(other) === null ? [] : [podsOf(other).metadata?.labels]));
  const nowhere = (selector: Labels | undefined) => !pods.some((labels) => fits(selector, labels));
  switch (one.kind) {
    case "Deployment":
    case "StatefulSet":
      if (!one.spec.selector?.matchLabels) return ["no selector"];
      return fits(one.spec.selector.matchLabels, podsOf(one).metadata?.labels) ? [] : ["the selector does not find its own pods"];
    case "Service":
      return nowhere(one.spec.selector) ? ["selects no pod"] : ofServicePorts(one, all);
    case "PodDisruptionBudget":
      return nowhere(one.spec.selector?.matchLabels) ? ["selects no pod"] : [];
    case "NetworkPolicy":
      return nowhere(one.spec.podSelector?.matchLabels) ? ["selects no pod"] : [];
    case "HorizontalPodAutoscaler": {
      const { kind, name } = one.spec.scaleTargetRef;
      return all.some((other) => other.kind === kind && other.metadata.name === name) ? [] : [`there is no ${kind} ${name}`];
    }
    default:
      return [];
  }
}

const portsOf = (container: Manifest): string[] =>
  (container.ports ?? []).flatMap((port: Manifest) => [port.name, port.containerPort]);

function ofServicePorts(one: Manifest, all: readonly Manifest[]): string[] {
  const behind = all.filter((other) => podsOf(other) !== null && fits(one.spec.selector, podsOf(other).metadata?.labels));
  const ports = behind.flatMap((other) => podsOf(other).spec.containers.flatMap(portsOf));
  return one.spec.ports.flatMap((port: Manifest) =>
    ports.includes(port.targetPort) ? [] : [`no pod has port ${port.targetPort}`],
  );
}

const PROBES = ["startupProbe", "livenessProbe", "readinessProbe"];

function ofPod(one: Manifest, all: readonly Manifest[]): string[] {
  const { spec } = podsOf(one);
  const faults: string[] = [];
  if (spec.securityContext?.runAsNonRoot !== true) faults.push("may run as root");
  if (spec.automountServiceAccountToken !== false) faults.push("mounts a token of the cluster's API");
  if (typeof spec.terminationGracePeriodSeconds !== "number") faults.push("no terminationGracePeriodSeconds");
  const maps = all.filter(({ kind }) => kind === "ConfigMap").map(({ metadata }) => metadata.name);
  for (const container of spec.containers) {
    for (const probe of PROBES) if (!container[probe]) faults.push(`no ${probe}`);
    for (const probe of PROBES) {
      const port = (container[probe]?.httpGet ?? container[probe]?.tcpSocket)?.port;
      if (port !== undefined && !portsOf(container).includes(port)) faults.push(`${probe} asks port ${port}, which is not there`);
    }
    const { allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities } = container.securityContext ?? {};
    if (allowPrivilegeEscalation !== false) faults.push("may gain privileges");
    if (readOnlyRootFilesystem !== true) faults.push("its root file system can be written");
    if (!capabilities?.drop?.includes("ALL")) faults.push("keeps capabilities");
    if (!container.resources?.requests?.memory || !container.resources?.limits?.memory) faults.push("no bounds of memory");
    for (const { configMapRef } of container.envFrom ?? []) {
      if (configMapRef && !maps.includes(configMapRef.name)) faults.push(`there is no ConfigMap ${configMapRef.name}`);
    }
    for (const { name, value } of container.env ?? []) {
      if (/password|secret|tokens?$|_url$/i.test(name) && value?.includes("@"))
        faults.push(`${name} has its secret in the manifest`);
    }
  }
  return faults;
}

function ofVolumes(one: Manifest): string[] {
  const { volumes = [], containers } = podsOf(one).spec;
  const claimed = (one.spec.volumeClaimTemplates ?? []).map(({ metadata }: Manifest) => metadata.name);
  const there = [...volumes.map(({ name }: Manifest) => name), ...claimed];
  const mounted: string[] = containers.flatMap(({ volumeMounts = [] }: Manifest) =>
    volumeMounts.map(({ name }: Manifest) => name),
  );
  return [
    ...mounted.filter((name) => !there.includes(name)).map((name) => `mounts ${name}, and there is no such volume`),
    ...there.filter((name) => !mounted.includes(name)).map((name) => `has the volume ${name} and mounts it nowhere`),
  ];
}
