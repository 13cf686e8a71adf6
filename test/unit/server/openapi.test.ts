/**
 * The contract as a document: every route stands in it once, each schema it refers to is there, and two validators of others agree that it is
 * OpenAPI 3.1.
 */
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { ADDRESSES, type RouteId } from "../../../src/contract/addresses.ts";
import { openApiDocument } from "../../../src/contract/openapi.ts";
import { errorsOf, type Route } from "../../../src/contract/route.ts";
import { ROUTES, routeIds } from "../../../src/contract/table.ts";

interface Content {
  readonly content?: Readonly<
    Record<string, { readonly example?: unknown; readonly examples?: Readonly<Record<string, unknown>> }>
  >;
}

interface Operation {
  readonly operationId: RouteId;
  readonly summary: string;
  readonly "x-permission": string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

describe("OpenAPI", () => {
  const document = openApiDocument("1.2.3") as {
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: object };
  };

  it("has every route once, under its name", () => {
    const ids = Object.values(document.paths).flatMap((methods) => Object.values(methods).map((one) => one.operationId));
    expect(ids.toSorted()).toEqual([...routeIds].toSorted());
  });

  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));

  it.each(operations.map((one) => [one.operationId, one] as const))("%s says what it takes, answers and refuses", (id, one) => {
    const route: Route = ROUTES[id];
    expect([one.summary, one["x-permission"]]).toEqual([route.summary, route.permission]);
    const named = (place: string) => (one.parameters ?? []).filter((each) => each.in === place).map(({ name }) => name);
    expect(named("path")).toEqual([...ADDRESSES[id][1].matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
    expect(named("query")).toEqual(Object.keys(route.query?.shape ?? {}));
    expect(named("header")).toEqual([...(route.headers ?? [])]);
    const codes = Object.values(one.responses).flatMap((each) =>
      Object.keys(each.content?.["application/problem+json"]?.examples ?? {}),
    );
    expect([...new Set(codes)].toSorted()).toEqual([...errorsOf(route)].toSorted());
    expect("412" in one.responses).toBe(route.headers?.includes("if-match") ?? false);
  });

  it.each(operations.map((one) => [one.operationId, one] as const))("%s has an example of each body, which fits", (id, one) => {
    const route: Route = ROUTES[id];
    const of = (content: Content | undefined) => content?.content?.["application/json"]?.example;
    if (route.body) expect(route.body.schema.safeParse(of(one.requestBody)).error?.issues).toBeUndefined();
    for (const [status, answer] of Object.entries(route.answers)) {
      if (answer === null || !("_zod" in answer)) continue;
      expect(answer.safeParse(of(one.responses[status])).error?.issues).toBeUndefined();
    }
  });

  it("refers to nothing that is not there", () => {
    const names = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name ?? "");
    expect(new Set(names).size).toBeGreaterThan(20);
    for (const name of names) expect(document.components.schemas).toHaveProperty(name);
    expect(JSON.stringify(document)).not.toContain("$defs");
  });

  it("is valid by the specification's own schema", async () => {
    const checked = await new Validator().validate(structuredClone(document) as Parameters<Validator["validate"]>[0]);
    expect(checked.errors ?? []).toEqual([]);
    expect(checked.valid).toBe(true);
  });

  it("has nothing that Redocly's recommended rules say", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const found = await lintFromString({ source: JSON.stringify(document), config });
    expect(found.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`)).toEqual([]);
  });
});
