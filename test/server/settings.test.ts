/**
 * The table of settings: each says what it is for, takes its own default, and stands in the README.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SETTINGS, type Setting } from "../../src/server/config/settings.ts";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

describe("the table of settings", () => {
  it.each(Object.entries<Setting>(SETTINGS))("%s", (name, { env, schema, fallback, about, inFile = true }) => {
    expect(about.length).toBeGreaterThan(3);
    expect(fallback === null || schema.safeParse(fallback).success).toBe(true);
    expect(readme).toContain(`\`${env}\``);
    if (inFile) expect(readme).toContain(`\`${name}\``);
  });
});
