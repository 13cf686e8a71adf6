/**
 * `makegood doctor --json` in the test's own process, by the names of its checks.
 */
import { expect } from "vitest";
import { terminal } from "../cli/terminal.ts";

export interface Doctored {
  readonly code: number;
  /** Status and detail of the first check of this name; undefined where there is none. */
  of(name: string): { readonly status: string; readonly detail: string } | undefined;
  readonly checks: readonly { readonly name: string; readonly status: string; readonly detail: string }[];
}

export async function doctor(env: Record<string, string>, ...args: string[]): Promise<Doctored> {
  const told = await terminal(["doctor", "--json", ...args], { env, cwd: "/" });
  const { checks } = JSON.parse(
    told.stdout || `{"checks":[{"name":"output","status":"fail","detail":${JSON.stringify(told.stderr)}}]}`,
  );
  return { code: told.code, checks, of: (name) => checks.find((one: { name: string }) => one.name === name) };
}

export const failing = (detail: RegExp) => ({ status: "fail", detail: expect.stringMatching(detail) });
export const warning = (detail: RegExp) => ({ status: "warn", detail: expect.stringMatching(detail) });
export const well = { status: "ok" };
