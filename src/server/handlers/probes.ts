/** What machines and people look at; pages have no script, nothing of another origin, and escape what came from outside. */
import { createHash } from "node:crypto";
import { type Operation, openApiDocument } from "../../contract/openapi.ts";
import type { TopicRecord } from "../../message/topic.ts";
import { holdOf, type Served } from "../../message/worker-note.ts";
import { json, type Reply, refused } from "../http.ts";
import type { Levels } from "../measured.ts";
import { VERSION } from "../version.ts";
import type { Handlers } from "./handlers.ts";

function text(body: string, type = "text/plain; charset=utf-8"): Reply {
  return { status: 200, headers: { "content-type": type }, body };
}

export const PROBES: Handlers<"live" | "ready" | "health" | "metrics" | "openApi" | "showPage" | "readDocs"> = {
  live: () => text("ok\n"),
  async ready({ query }, _, health) {
    const checks = await health.ready();
    if (checks.some((check) => !check.ok)) {
      // Anyone may ask: where the database is stays with those who have a token, in /health.
      const shown = checks.map((check) => ({ ...check, detail: check.detail && withoutAddresses(check.detail) }));
      const detail = shown.flatMap((check) => (check.ok ? [] : [`${check.name}: ${check.detail}`])).join("; ");
      throw refused("not_ready", detail, { members: { checks: shown } });
    }
    const lines = checks.map(({ name, detail }) => `[+] ${name} ok${detail === null ? "" : `: ${detail}`}\n`);
    return text(query.verbose === undefined ? "ok\n" : `${lines.join("")}ready\n`);
  },
  async health(_, __, health) {
    const summary = await health.summary();
    return json(summary.status === "unhealthy" ? 503 : 200, summary);
  },
  openApi: (_, { basePath }) => json(200, { ...openApiDocument(VERSION), servers: [{ url: basePath || "/" }] }),
  metrics: async (_, __, { metrics }) => text(await metrics.text(), metrics.contentType),
  async showPage(_, { basePath: base = "" }, health) {
    const [{ status, reasons }, { value }] = await Promise.all([health.summary(), health.levels(WAIT_MS)]);
    const why = reasons.map((reason) => `<li>${escaped(reason)}</li>`).join("");
    return htmlPage(
      `Makegood: ${status}`,
      `<header><h1>Makegood</h1></header>
<main><p>Status: <strong>${status}</strong></p>${why && `<ul>${why}</ul>`}
${value?.topics.length ? topicsTable(value, health.delivered, base) : "<p>No topic has been declared yet.</p>"}
<nav aria-label="API"><h2>Look further</h2><ul>
<li><a href="${base}/api/v1/topics">Topics</a></li>
<li><a href="${base}/api/v1/messages">Messages</a></li>
<li><a href="${base}/api/v1/messages?status=dead&amp;resolution=open">Open dead letters</a></li>
<li><a href="${base}/health">Health</a></li><li><a href="${base}/metrics">Metrics</a></li>
<li><a href="${base}/readyz?verbose">Readiness</a></li><li><a href="${base}/docs">The API</a></li></ul></nav></main>`,
    );
  },
  readDocs(_, { basePath: base = "" }) {
    const page = docs.get(base) ?? htmlPage("Makegood: the API", docsOf(openApiDocument(VERSION), base));
    docs.set(base, page);
    return page;
  },
};

/** URLs, sockets, addresses with and without a port, names with dots, and the name that could not be looked up. */
const ADDRESSES = [
  /\b[a-z]+:\/\/\S+/gi,
  /(?<=\b(?:ENOTFOUND|EAI_AGAIN)\s)\S+/g,
  /(?<![\w.])\/[\w.-]+(?:\/[\w.-]+)+/g,
  /\[?[0-9a-f]*(?::[0-9a-f]*){2,}\]?(?::\d+)?/gi,
  /\b[\w-]+(?:\.[\w-]+)+(?::\d+)?\b|\b[\w-]+:\d{2,5}\b/g,
];

export const withoutAddresses = (text: string): string =>
  ADDRESSES.reduce((left, address) => left.replace(address, "its address"), text);

const STYLE = `:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--line:#767676;--link:#0b57d0}
@media (prefers-color-scheme:dark){:root{--ink:#ececec;--paper:#141414;--line:#8f8f8f;--link:#8ab4f8}}
body{font:1rem/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}th,td{padding:.25rem .75rem;border-bottom:1px solid var(--line);text-align:left}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}a{color:var(--link)}caption{text-align:left;padding:.5rem 0}
.scroll{overflow-x:auto}summary{cursor:pointer;padding:.25rem 0}pre{overflow-x:auto;border:1px solid var(--line);padding:.5rem}`;

const POLICY = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

function htmlPage(title: string, body: string): Reply {
  const text = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title><style>${STYLE}</style></head>
<body>${body}</body></html>
`;
  return { status: 200, headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": POLICY }, body: text };
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
const table = (rows: readonly string[], head = ""): string =>
  rows.length === 0 ? "" : `<div class="scroll"><table>${head}<tbody>${rows.join("\n")}</tbody></table></div>`;

const STATUSES = ["pending", "processing", "dead"] as const;
const ROWS_MAX = 500;
const WAIT_MS = 1_000;

const docs = new Map<string, Reply>();

function topicsTable({ topics, counts, served }: Levels, delivered: ReadonlyMap<string, number>, base: string): string {
  const sums = new Map<string, number>();
  for (const { topic, status, count } of counts) sums.set(`${topic} ${status}`, (sums.get(`${topic} ${status}`) ?? 0) + count);
  const rows = topics.slice(0, ROWS_MAX).map((topic) => {
    const numbers = [...STATUSES.map((status) => sums.get(`${topic.name} ${status}`)), delivered.get(topic.name)];
    const cells = numbers.map((count = 0) => `<td class="n">${count}</td>`).join("");
    const link = `${base}/api/v1/topics/${topic.name.split("/").map(encodeURIComponent).join("/")}`;
    const name = `<th scope="row"><a href="${escaped(link)}">${escaped(topic.name)}</a></th>`;
    return `<tr>${name}${cells}<td>${escaped(stateOf(topic, served))}</td></tr>`;
  });
  const heads = [...STATUSES, "delivered since start"].map((text) => `<th scope="col" class="n">${text}</th>`).join("");
  const head = `<thead><tr><th scope="col">topic</th>${heads}<th scope="col">state</th></tr></thead>`;
  const more = topics.length > ROWS_MAX ? `<p>… and ${topics.length - ROWS_MAX} more topics.</p>` : "";
  return table(rows, `<caption>Messages by topic and status</caption>\n${head}\n`) + more;
}

function stateOf(topic: TopicRecord, served: Served): string {
  const hold = holdOf(topic, served);
  const held = topic.breaker.tenants.length;
  if (hold === null) return held === 0 ? "delivering" : `delivering, ${held} tenant${held === 1 ? "" : "s"} held`;
  if (topic.paused) return "paused";
  if (topic.disabledReason !== null) return `sink disabled: ${hold.reason}`;
  if (topic.breaker.state !== "closed") return `breaker ${topic.breaker.state.replace("_", " ")}`;
  return `not served: ${hold.code}: ${hold.reason}`;
}

const code = (value: unknown): string => `<pre>${escaped(JSON.stringify(value, null, 1))}</pre>`;
const row = (...cells: string[]): string => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
const folded = (id: string, head: string, body: string): string =>
  `<details id="${id}"><summary>${head}</summary>${body}</details>`;

function docsOf({ tags, paths, components }: ReturnType<typeof openApiDocument>, base: string): string {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const head = `<code>${method.toUpperCase()} ${escaped(base + path)}</code> ${escaped(operation.summary)}`;
      return { tags: operation.tags, text: folded(operation.operationId, head, operationOf(operation)) };
    }),
  );
  const sections = tags.map(({ name, description }) => {
    const own = all.flatMap((one) => (one.tags.includes(name) ? [one.text] : []));
    return `<section><h2>${escaped(name)}</h2><p>${escaped(description)}</p>${own.join("\n")}</section>`;
  });
  const shapes = Object.entries(components.schemas).map(([name, schema]) => folded(name, `<code>${name}</code>`, code(schema)));
  return `<header><h1>The API</h1><p>The same as a document: <a href="${base}/openapi.json">${base}/openapi.json</a></p></header>
<main>${sections.join("\n")}<section><h2>Shapes</h2>${shapes.join("\n")}</section></main>`;
}

function operationOf({ parameters = [], requestBody, responses, ...one }: Operation): string {
  const rows = parameters.map(({ name, in: place, description = "", schema }) =>
    row(`<code>${name}</code>`, place, `${escaped(description)} ${linked(schema)}`),
  );
  const body = requestBody ? `<h4>Body</h4>${contentOf(requestBody)}` : "";
  const answers = Object.entries(responses).map(([status, one]) => row(status, escaped(one.description ?? ""), contentOf(one)));
  return `<p>For: ${one["x-permission"]}; it ${one["x-makegood-effect"]}</p>${table(rows)}${body}${table(answers)}`;
}

const contentOf = ({ content = {} }: Operation["responses"][string]): string =>
  Object.values(content)
    .map(({ schema, example }) => `${linked(schema)}${example === undefined ? "" : code(example)}`)
    .join("");

function linked(schema: object): string {
  const name = "$ref" in schema ? String(schema.$ref).split("/").at(-1) : undefined;
  return name === undefined ? code(schema) : `<a href="#${name}"><code>${name}</code></a>`;
}
