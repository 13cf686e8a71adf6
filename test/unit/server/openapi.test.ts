/**
 * The contract as a document: every route stands in it once, each schema it refers to is there, and two validators of others agree that it is
 * OpenAPI 3.1.
 */
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { openApiDocument } from "../../../src/contract/openapi.ts";
import { routeIds } from "../../../src/contract/table.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
}

describe("OpenAPI", () => {
  const document = openApiDocument() as { paths: Record<string, Record<string, Operation>>; components: { schemas: object } };

  it("has every route once, under its name", () => {
    const ids = Object.values(document.paths).flatMap((methods) => Object.values(methods).map((one) => one.operationId));
    expect(ids.toSorted()).toEqual([...routeIds].toSorted());
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

  it("has nothing that Redocly's recommended rules call an error", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const found = await lintFromString({ source: JSON.stringify(document), config });
    expect(found.filter(({ severity }) => severity === "error").map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual(
      [],
    );
  });
});
