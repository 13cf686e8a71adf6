/**
 * Rules about who may know whom: import direction, cycles, doors and barrels. Direction counts types too, because a type is
 * knowledge; cycles count only what is loaded at run time.
 */
import { DOORS, mayImport, roomOf } from "./rooms.ts";
import type { Found, Rule } from "./rules.ts";
import type { Import, SourceFile } from "./source.ts";

export const unknownRoom: Rule = (tree) =>
  tree
    .filter(({ path }) => roomOf(path) === null)
    .map(({ path }) => ({ file: path, line: 1, text: "belongs to no room: put its folder into rooms.ts" }));

export const importDirection: Rule = (tree) =>
  tree.flatMap(({ path, imports }) => {
    const from = roomOf(path);
    if (from === null) return [];
    return imports.flatMap(({ target, line, kind }): Found[] => {
      if (target === null) return [];
      const to = roomOf(target);
      if (to !== null && mayImport(from, to, target, kind)) return [];
      return [{ file: path, line, text: `${from} may not import ${to ?? "a file outside the rooms"} (${target})` }];
    });
  });

/** An adapter is a few lines between an ORM and the seam: no library, no error class, no other room comes in through it. */
export const adapterImports: Rule = (tree) =>
  tree
    .filter(({ path }) => path.startsWith("src/adapters/"))
    .flatMap(({ path, imports }) => {
      const allowed = ({ target, kind, form }: Import): boolean =>
        DOORS.includes(path)
          ? form === "re-export" && target?.startsWith("src/adapters/") === true
          : kind === "type" && target === "src/store/store.ts";
      return imports
        .filter((one) => !allowed(one))
        .map(({ spec, line }) => ({ file: path, line, text: `an adapter imports types of store.ts only, not ${spec}` }));
    });

export const barrels: Rule = (tree) =>
  tree
    .filter(({ path }) => !DOORS.includes(path))
    .flatMap(({ path, imports }) => {
      const named = /\/index\.[cm]?[jt]sx?$/.test(path);
      const found: Found[] = named
        ? [{ file: path, line: 1, text: "index.ts is for doors: name the file after what it does" }]
        : [];
      const through = imports.filter(({ form }) => form === "re-export");
      return [
        ...found,
        ...through.map(({ spec, line }) => ({
          file: path,
          line,
          text: `only a door re-exports: import ${spec} where it is used`,
        })),
      ];
    });

const RE_EXPORT = /\bexport\b[^;"'`()=]*?\bfrom\s*["'][^"'\n]*["']\s*;?/g;

/** What is left of a door without its re-exports must be nothing. */
export const doors: Rule = (tree) =>
  tree
    .filter(({ path }) => DOORS.includes(path))
    .flatMap(({ path, code }) => {
      const rest = code.replace(RE_EXPORT, (text) => text.replace(/[^\n]/g, " "));
      const at = rest.search(/\S/);
      if (at === -1) return [];
      return [{ file: path, line: rest.slice(0, at).split("\n").length, text: "a door only re-exports: move this into a file" }];
    });

/** Strongly connected files, by Tarjan: each cycle once, however many ways lead round it. */
export const importCycles: Rule = (tree) => {
  const byPath = new Map(tree.map((file) => [file.path, file]));
  const state = new Map<string, { index: number; low: number; onStack: boolean }>();
  const stack: string[] = [];
  const found: Found[] = [];

  const visit = (file: SourceFile): { index: number; low: number; onStack: boolean } => {
    const me = { index: state.size, low: state.size, onStack: true };
    state.set(file.path, me);
    stack.push(file.path);
    for (const { target, kind } of file.imports) {
      const next = target === null || kind === "type" ? undefined : byPath.get(target);
      if (!next) continue;
      const seen = state.get(next.path);
      if (!seen) me.low = Math.min(me.low, visit(next).low);
      else if (seen.onStack) me.low = Math.min(me.low, seen.index);
    }
    if (me.low === me.index) {
      const members = stack.splice(stack.indexOf(file.path));
      for (const member of members) (state.get(member) as { onStack: boolean }).onStack = false;
      const itself = file.imports.some(({ target, kind }) => target === file.path && kind === "value");
      if (members.length > 1 || itself) {
        found.push({
          file: file.path,
          line: 1,
          text: `imports go round: ${members.sort((a, b) => a.localeCompare(b)).join(", ")}`,
        });
      }
    }
    return me;
  };
  for (const file of tree) if (!state.has(file.path)) visit(file);
  return found;
};

/** What becomes of a message is decided in one place, and everybody goes there by the same door. */
export const decidedOnce: Rule = (tree) =>
  tree
    .filter(({ path }) => path !== "src/message/conclude.ts")
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ target, kind }) => target === "src/message/decide.ts" && kind === "value")
        .map(({ line }) => ({
          file: path,
          line,
          text: "only conclude() calls decide(): call conclude() of message/conclude.ts",
        })),
    );
