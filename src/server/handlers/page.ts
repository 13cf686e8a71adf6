/**
 * `GET /`: a plain status page for people until the dashboard exists. No script, one style sheet allowed by its hash,
 * everything that was ever given from outside is escaped.
 */
import type { Status } from "../../message/message.ts";
import type { TopicRecord } from "../../message/topic.ts";
import { holdOf, type Served } from "../../message/worker-note.ts";
import type { Health, Levels } from "../health.ts";
import { escapeHtml, htmlPage } from "../html.ts";
import { docsPage } from "./docs-page.ts";
import type { Handlers } from "./handlers.ts";

const STATUSES: readonly Status[] = ["pending", "processing", "dead"];
const ROWS_MAX = 500;
const WAIT_MS = 1_000;

export function pageHandlers(health: Health, base = ""): Handlers<"showPage" | "readDocs"> {
  const showPage = async () => {
    const [summary, levels] = await Promise.all([health.summary(), health.levels(WAIT_MS)]);
    const known = levels.value;
    const reasons = summary.reasons.map((reason) => `<li>${escapeHtml(reason)}</li>`).join("");
    const table =
      !known || known.topics.length === 0 ? "<p>No topic has been declared yet.</p>" : tableOf(known, health.delivered, base);
    return htmlPage(
      `Makegood: ${summary.status}`,
      `<header><h1>Makegood</h1></header>
<main><p>Status: <strong>${summary.status}</strong></p>${reasons === "" ? "" : `<ul>${reasons}</ul>`}
${table}
<nav aria-label="API"><h2>Look further</h2><ul>
<li><a href="${base}/api/v1/topics">Topics</a></li>
<li><a href="${base}/api/v1/messages">Messages</a></li>
<li><a href="${base}/api/v1/messages?status=dead&amp;resolution=open">Open dead letters</a></li>
<li><a href="${base}/health">Health</a></li><li><a href="${base}/metrics">Metrics</a></li>
<li><a href="${base}/readyz?verbose">Readiness</a></li><li><a href="${base}/docs">The API</a></li></ul></nav></main>`,
    );
  };
  return { showPage, readDocs: () => docsPage(base) };
}

function tableOf({ topics, counts, served }: Levels, delivered: ReadonlyMap<string, number>, base: string): string {
  const sums = new Map<string, number>();
  for (const { topic, status, count } of counts) {
    const cell = `${topic} ${status}`;
    sums.set(cell, (sums.get(cell) ?? 0) + count);
  }
  const rows = topics.slice(0, ROWS_MAX).map((topic) => {
    const cells = STATUSES.map((status) => `<td class="n">${sums.get(`${topic.name} ${status}`) ?? 0}</td>`).join("");
    const done = `<td class="n">${delivered.get(topic.name) ?? 0}</td>`;
    const link = `${base}/api/v1/topics/${topic.name.split("/").map(encodeURIComponent).join("/")}`;
    return `<tr><th scope="row"><a href="${escapeHtml(link)}">${escapeHtml(topic.name)}</a></th>${cells}${done}<td>${escapeHtml(stateOf(topic, served))}</td></tr>`;
  });
  const more = topics.length > ROWS_MAX ? `<p>… and ${topics.length - ROWS_MAX} more topics.</p>` : "";
  const heads = STATUSES.map((status) => `<th scope="col" class="n">${status}</th>`).join("");
  return `<div class="scroll"><table><caption>Messages by topic and status</caption>
<thead><tr><th scope="col">topic</th>${heads}<th scope="col" class="n">delivered since start</th><th scope="col">state</th></tr></thead>
<tbody>${rows.join("\n")}</tbody></table></div>${more}`;
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
