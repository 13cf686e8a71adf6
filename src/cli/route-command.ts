/**
 * Commands made of the contract: the parts of an address's path become arguments, the fields of its query or body options, with the words,
 * choices and limits of their schemas. A command says its name and how its answer is shown; what it sends is described nowhere else.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { z } from "zod";
import { ADDRESSES, type RouteId } from "../contract/addresses.ts";
import { check, faultsText } from "../contract/faults.ts";
import type { Route } from "../contract/route.ts";
import { type AnswerOf, type InputOf, ROUTES } from "../contract/table.ts";
import { isTopicName } from "../message/validate.ts";
import { type Access, askAndShow, type Conversation, conversation } from "./conversation.ts";
import type { Io } from "./io.ts";
import type { Run } from "./run.ts";

/** Fields whose option has another name than they. */
const FLAGS: Readonly<Record<string, string>> = {
  version: "if-version",
  group_id: "group",
  idempotency_key: "key",
  rate_per_second: "rate",
  failure_share_max: "stop-at",
  evaluation_status: "evaluation",
  execution_status: "execution",
  action_type: "type",
  include_provenance: "provenance",
  ids: "id",
};

/** What an address takes from the command line. */
export interface Taking {
  /** Argument by field, in their order, as Commander writes it: `<group>`, `[id]`, `<from...>`. Absent: the parts of the path. */
  readonly args?: Readonly<Record<string, string>>;
  /** Option by field, instead of the common name; null: none, the command gives it itself. Null as a whole: no field has one. */
  readonly flags?: Readonly<Record<string, string | null>> | null;
}

type Options = Readonly<Record<string, unknown>>;

/** What is sent instead of the input as it was read. */
interface Sent<Id extends RouteId> {
  readonly input?: InputOf<Id>;
  /** JSON text that is sent as it is: a payload in it keeps its bytes. */
  readonly body?: string;
}

export interface RouteCommand<Id extends RouteId> extends Taking {
  readonly name: string;
  /** Instead of the address's summary. */
  readonly about?: string;
  readonly isDefault?: boolean;
  readonly example?: string;
  /** Further options, that only the command line has: flags and what they mean. */
  readonly options?: Readonly<Record<string, string>>;
  /** Runs before anything is sent: reads a file, looks up an id, shows what is touched and asks. */
  before?(asking: Conversation, input: InputOf<Id>, options: Options): Promise<Sent<Id> | undefined>;
  show(
    io: Io,
    answer: AnswerOf<Id>,
    given: { readonly input: InputOf<Id>; readonly options: Options; readonly text: string },
  ): void;
}

export function routeCommand<Id extends RouteId>(parent: Command, run: Run, id: Id, about: RouteCommand<Id>): void {
  const command = described(parent.command(about.name, { isDefault: about.isDefault ?? false }), id, about);
  const read = takes(command, id, about);
  command.action(() =>
    conversation(run, accessOf(id), async (asking) => {
      const options = command.opts<Options>();
      const given = read() as InputOf<Id>;
      const { input = given, body } = (await about.before?.(asking, given, options)) ?? {};
      return askAndShow(asking, id, input, (answer, text) => about.show(asking.io, answer, { input, options, text }), body);
    }),
  );
}

type Described = Pick<RouteCommand<RouteId>, "about" | "example" | "options">;

export function described(command: Command, id: RouteId, { about, example, options = {} }: Described): Command {
  const { summary } = ROUTES[id];
  command.description(about ?? summary.charAt(0).toLowerCase() + summary.slice(1));
  for (const [flags, words] of Object.entries(options)) command.option(flags, words);
  return example === undefined ? command : command.addHelpText("after", `\nExample:\n  $ makegood ${example}`);
}

/** What an address does to a store that the command opens itself: only these may meet one that is not set up. */
const SETS_UP: readonly RouteId[] = ["enqueue", "putTopic", "putRule", "putAction"];

export function accessOf(id: RouteId): Access {
  if (SETS_UP.includes(id)) return "up";
  return ROUTES[id].permission === "read" ? "look" : "check";
}

/** Adds the arguments and options of an address; what comes back reads what was given, as the client takes it. */
export function takes(command: Command, id: RouteId, { args, flags }: Taking): () => object {
  const fields = fieldsOf(ROUTES[id]);
  const params = [...ADDRESSES[id][1].matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  const named: Record<string, string> =
    args ?? (params.includes("namespace") ? { topic: "<topic>" } : Object.fromEntries(params.map((name) => [name, `<${name}>`])));
  const positional = Object.entries(named);
  for (const [field, shown] of positional) command.argument(shown, "", argumentReader(field, shown, fields.get(field)?.schema));
  const options = flags === null ? [] : [...fields].filter(([name]) => !Object.hasOwn(named, name) && flags?.[name] !== null);
  const byField = options.map(([name, { schema, path, required }]) => {
    const option = optionOf(flags?.[name] ?? FLAGS[name] ?? name.replaceAll("_", "-"), schema);
    command.addOption(option.makeOptionMandatory(required));
    return { path, attribute: option.attributeName() };
  });
  return () => {
    const input: Record<string, unknown> = {};
    positional.forEach(([field], i) => {
      const value: unknown = command.processedArgs[i];
      if (field === "topic" && params.includes("namespace")) [input.namespace, input.name] = String(value).split("/");
      else input[field] = value;
    });
    const given = command.opts<Record<string, unknown>>();
    for (const { path, attribute } of byField) put(input, path, given[attribute]);
    return input;
  };
}

function put(into: Record<string, unknown>, [first, ...rest]: readonly string[], value: unknown): void {
  if (value === undefined || first === undefined) return;
  if (rest.length === 0) into[first] = value;
  else {
    into[first] ??= {};
    put(into[first] as Record<string, unknown>, rest, value);
  }
}

interface Field {
  readonly schema: z.ZodType;
  readonly path: readonly string[];
  readonly required: boolean;
}

/** The fields of query and body; those of an object inside stand beside the others. */
function fieldsOf({ query, body }: Route): Map<string, Field> {
  const fields = new Map<string, Field>();
  const add = (shape: z.core.$ZodShape, before: readonly string[]): void => {
    for (const [name, schema] of Object.entries(shape) as [string, z.ZodType][]) {
      const inner = innermost(schema);
      const path = [...before, name];
      if (inner.type === "object") add((inner as z.ZodObject).shape, path);
      else if (inner.type !== "unknown" && inner.type !== "record")
        fields.set(name, { schema, path, required: before.length === 0 && !schema.safeParse(undefined).success });
    }
  };
  for (const schema of [query, body?.schema]) {
    const inner = schema && innermost(schema);
    if (inner?.type === "object") add((inner as z.ZodObject).shape, []);
  }
  return fields;
}

/** What is inside of optional, nullable and transformed; of several shapes the first. */
function innermost(schema: z.ZodType): z.ZodType {
  const def = schema.def as { innerType?: z.ZodType; in?: z.ZodType; options?: readonly z.ZodType[] };
  const inner = def.innerType ?? def.in ?? (schema.type === "union" ? def.options?.[0] : undefined);
  return inner === undefined ? schema : innermost(inner);
}

function optionOf(flag: string, schema: z.ZodType): Option {
  const inner = innermost(schema);
  const words = schema.description ?? inner.description ?? "";
  if (inner.type === "boolean") return new Option(`--${flag}`, words);
  if (inner.type === "enum")
    return new Option(`--${flag} <${lastWord(flag)}>`, words).choices(Object.values((inner as z.ZodEnum).enum).map(String));
  if (inner.type === "array") {
    const one = readerOf((inner as z.ZodArray<z.ZodType>).element);
    const all = (text: string, before: unknown[] | undefined) => [...(before ?? []), one(text)];
    return new Option(`--${flag} <${lastWord(flag)}...>`, words).argParser(all);
  }
  return new Option(`--${flag} <${inner.type === "number" ? "n" : lastWord(flag)}>`, words).argParser(readerOf(schema));
}

const lastWord = (flag: string): string => flag.replace(/.*-/, "");

/** Reads a text as its schema wants it, and refuses what the API would. */
function readerOf(schema: z.ZodType): (text: string) => unknown {
  const inner = innermost(schema);
  const whole = (inner.def as { check?: string; format?: string }).format === "safeint";
  return (text) => {
    if (inner.type === "number" && !(whole ? /^-?[0-9]{1,15}$/ : /^-?[0-9]{1,9}(\.[0-9]{1,9})?$/).test(text))
      throw new InvalidArgumentError(`It must be a ${whole ? "whole " : ""}number.`);
    const value = inner.type === "number" ? Number(text) : text;
    const checked = check(schema, value);
    if (!checked.ok) throw new InvalidArgumentError(`It ${faultsText(checked.faults)}.`);
    return value;
  };
}

type Reader = (text: string, before?: unknown) => unknown;

function argumentReader(field: string, shown: string, schema: z.ZodType | undefined): Reader {
  if (field === "topic") return topicArgument;
  if (field === "id" && /group|candidate|into/.test(shown)) return numberArgument(shown.replace(/\W/g, ""));
  if (schema === undefined) return (text) => text;
  const inner = innermost(schema);
  if (inner.type !== "array") return readerOf(schema);
  const one = readerOf((inner as z.ZodArray<z.ZodType>).element);
  return (text, before) => [...((before as unknown[] | undefined) ?? []), one(text)];
}

export function topicArgument(text: string): string {
  if (isTopicName(text)) return text;
  throw new InvalidArgumentError("A topic's name is namespace/name, such as billing/finalize (lower case, digits and . _ -).");
}

/** Groups and candidates have numbers, messages and redrives UUIDs: one in the place of the other is said at once. */
const numberArgument = (what: string) => (text: string) => {
  if (/^[0-9]{1,15}$/.test(text)) return text;
  const kind = what === "candidate" ? "candidate" : "group";
  throw new InvalidArgumentError(`The id of a ${kind} is a number: \`makegood ${kind}s list\` shows them.`);
};
