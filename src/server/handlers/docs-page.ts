/**
 * GET /docs: the contract to be read by people, from the same document as /openapi.json, without a script and without anything from elsewhere.
 */
import { openApiDocument } from "../../contract/openapi.ts";
import { escapeHtml, htmlPage } from "../html.ts";
import type { Reply } from "../problem.ts";
import { VERSION } from "../version.ts";

interface Content {
  readonly description?: string;
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>;
}

interface Operation extends Record<"operationId" | "summary" | "x-permission", string> {
  readonly tags: readonly string[];
  readonly parameters?: readonly (Record<"name" | "in", string> & { readonly description?: string; readonly schema: object })[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

interface Document {
  readonly tags: readonly Record<"name" | "description", string>[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

const made = new Map<string, Reply>();

/** Made once for each base: it does not change while the process lives. */
export function docsPage(base: string): Reply {
  const page = made.get(base) ?? htmlPage("Makegood: the API", bodyOf(openApiDocument(VERSION) as unknown as Document, base));
  made.set(base, page);
  return page;
}

const code = (value: unknown): string => `<pre>${escapeHtml(JSON.stringify(value, null, 1))}</pre>`;
const row = (...cells: string[]): string => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
const table = (rows: readonly string[]): string =>
  rows.length === 0 ? "" : `<div class="scroll"><table>${rows.join("")}</table></div>`;
const folded = (id: string, head: string, body: string): string =>
  `<details id="${id}"><summary>${head}</summary>${body}</details>`;

function bodyOf({ tags, paths, components }: Document, base: string): string {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ head: `${method.toUpperCase()} ${base}${path}`, operation })),
  );
  const sections = tags.map(({ name, description }) => {
    const own = all.filter(({ operation }) => operation.tags.includes(name));
    const folds = own.map(({ head, operation }) => {
      const summary = `<code>${escapeHtml(head)}</code> ${escapeHtml(operation.summary)}`;
      return folded(operation.operationId, summary, operationOf(operation));
    });
    return `<section><h2>${escapeHtml(name)}</h2><p>${escapeHtml(description)}</p>${folds.join("\n")}</section>`;
  });
  const shapes = Object.entries(components.schemas).map(([name, schema]) => folded(name, `<code>${name}</code>`, code(schema)));
  return `<header><h1>The API</h1><p>The same as a document: <a href="${base}/openapi.json">${base}/openapi.json</a></p></header>
<main>${sections.join("\n")}<section><h2>Shapes</h2>${shapes.join("\n")}</section></main>`;
}

function operationOf({ parameters = [], requestBody, responses, ...operation }: Operation): string {
  const rows = parameters.map((one) =>
    row(`<code>${one.name}</code>`, one.in, `${escapeHtml(one.description ?? "")} ${linked(one.schema)}`),
  );
  const body = requestBody ? `<h4>Body</h4>${contentOf(requestBody)}` : "";
  const answers = Object.entries(responses).map(([status, one]) =>
    row(status, escapeHtml(one.description ?? ""), contentOf(one)),
  );
  return `<p>For: ${operation["x-permission"]}</p>${table(rows)}${body}${table(answers)}`;
}

function contentOf({ content = {} }: Content): string {
  return Object.values(content)
    .map(({ schema, example }) => `${linked(schema)}${example === undefined ? "" : code(example)}`)
    .join("");
}

/** A shape by its name, with a link; any other schema as it is. */
function linked(schema: object): string {
  const name = "$ref" in schema ? String(schema.$ref).split("/").at(-1) : undefined;
  return name === undefined ? code(schema) : `<a href="#${name}"><code>${name}</code></a>`;
}
