/**
 * GET /docs: the contract to be read by people, from the same document as /openapi.json, without a script and without anything from elsewhere.
 */
import { openApiDocument } from "../../contract/openapi.ts";
import { escapeHtml, htmlPage } from "../html.ts";
import type { Reply } from "../problem.ts";

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly "x-permission": string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly description?: string;
    readonly schema: object;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Readonly<Record<string, { readonly schema: object }>> }>
  >;
}

interface Document {
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

const made = new Map<string, Reply>();

/** Made once for each base: it does not change while the process lives. */
export function docsPage(base: string): Reply {
  const page = made.get(base) ?? htmlPage("Makegood: the API", bodyOf(openApiDocument() as unknown as Document, base));
  made.set(base, page);
  return page;
}

function bodyOf({ tags, paths, components }: Document, base: string): string {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path: base + path, operation })),
  );
  const sections = tags.map(({ name, description }) => {
    const own = all.filter(({ operation }) => operation.tags.includes(name));
    return `<section><h2>${escapeHtml(name)}</h2><p>${escapeHtml(description)}</p>${own.map(oneOf).join("\n")}</section>`;
  });
  const shapes = Object.entries(components.schemas).map(
    ([name, schema]) => `<details id="${name}"><summary><code>${name}</code></summary>${codeOf(schema)}</details>`,
  );
  return `<header><h1>The API</h1><p>The same as a document: <a href="${base}/openapi.json">${base}/openapi.json</a></p></header>
<main>${sections.join("\n")}<section><h2>Shapes</h2>${shapes.join("\n")}</section></main>`;
}

function oneOf({
  method,
  path,
  operation,
}: {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}): string {
  const { operationId, summary, parameters = [], requestBody, responses } = operation;
  const rows = parameters.map(
    (one) =>
      `<tr><td><code>${one.name}</code></td><td>${one.in}</td><td>${escapeHtml(one.description ?? "")} ${linked(one.schema)}</td></tr>`,
  );
  const body = Object.values(requestBody?.content ?? {}).map(({ schema }) => `<h4>Body</h4>${linked(schema)}`);
  const answers = Object.entries(responses).map(([status, { description, content = {} }]) => {
    const schema = Object.values(content)[0]?.schema;
    return `<tr><td>${status}</td><td>${escapeHtml(description)}</td><td>${schema ? linked(schema) : ""}</td></tr>`;
  });
  const table = (content: readonly string[]) =>
    content.length === 0 ? "" : `<div class="scroll"><table>${content.join("")}</table></div>`;
  return `<details id="${operationId}"><summary><code>${method} ${escapeHtml(path)}</code> ${escapeHtml(summary)}</summary>
<p>For: ${operation["x-permission"]}</p>${table(rows)}${body.join("")}${table(answers)}</details>`;
}

/** A shape by its name, with a link; any other schema as it is. */
function linked(schema: object): string {
  const name = "$ref" in schema ? String(schema.$ref).split("/").at(-1) : undefined;
  return name === undefined ? codeOf(schema) : `<a href="#${name}"><code>${name}</code></a>`;
}

const codeOf = (schema: object): string => `<pre>${escapeHtml(JSON.stringify(schema, null, 1))}</pre>`;
