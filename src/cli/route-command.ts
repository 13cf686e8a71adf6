/** Commands made of the contract: the parts of a path become arguments, the fields of a query or body options. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { z } from "zod";
import { ADDRESSES, type RouteId } from "../contract/addresses.ts";
import { check, faultsText } from "../contract/faults.ts";
import type { Route } from "../contract/route.ts";
import { type AnswerOf, type InputOf, ROUTES } from "../contract/table.ts";
import { innermost } from "../contract/values.ts";
import { isTopicName } from "../message/validate.ts";
import { isUuid } from "../platform/ids.ts";
import type { Access, AddCommand, Conversation, Options } from "./conversation.ts";
import { ask, confirmed, conversation, YES } from "./conversation.ts";
import { type ExitCode, type Io, tell } from "./io.ts";
import { listing } from "./table.ts";

const FLAGS: Readonly<Record<string, string>> = {
  ...{ version: "if-version", group_id: "group", idempotency_key: "key", ids: "id", action_type: "type" },
  ...{ rate_per_second: "rate", failure_share_max: "stop-at", include_provenance: "provenance" },
  ...{ evaluation_status: "evaluation", execution_status: "execution" },
};

export interface RouteCommand<Id extends RouteId> {
  readonly name: string;
  /** Argument by field, in their order, as Commander writes it: `<group>`, `[id]`, `<from...>`. Absent: the parts of the path. */
  readonly args?: Readonly<Record<string, string>>;
  /** Option by field, instead of the common name; null: none, the command gives it itself. Null as a whole: no field has one. */
  readonly flags?: Readonly<Record<string, string | null>> | null;
  /** Further options, that only the command line has: flags and what they mean. */
  readonly options?: Readonly<Record<string, string>>;
  /** Options, by field, that must be given although the address does without. */
  readonly needs?: readonly string[];
  readonly about?: string;
  readonly example?: string;
  readonly isDefault?: boolean;
  readonly access?: Access;
  /** Without --yes: shows what is touched and gives the question that a person has to say yes to. */
  asks?(asking: Conversation, input: InputOf<Id>): Promise<string>;
  /** Before anything is sent: reads a file, looks up an id. `body`: JSON text that is sent as it is. */
  before?(asking: Conversation, input: InputOf<Id>, options: Options): Promise<{ input?: InputOf<Id>; body?: string }>;
  show?(io: Io, answer: AnswerOf<Id>, given: { input: InputOf<Id>; options: Options; text: string }): void;
  act?(asking: Conversation, input: InputOf<Id>, options: Options): Promise<ExitCode>;
}

export const routeCommand =
  <Id extends RouteId>(id: Id, about: RouteCommand<Id>): AddCommand =>
  (parent, run) => {
    const { summary } = ROUTES[id];
    const command = parent
      .command(about.name, { isDefault: about.isDefault ?? false })
      .description(about.about ?? summary.charAt(0).toLowerCase() + summary.slice(1));
    const read = takes(command, id, about);
    for (const [flags, words] of Object.entries({ ...about.options, ...(about.asks && YES) })) command.option(flags, words);
    if (about.example !== undefined) command.addHelpText("after", `\nExample:\n  $ makegood ${about.example}`);
    command.action(() =>
      conversation(run, about.access ?? accessOf(id), async (asking) => {
        const options = command.opts<Options>();
        const given = read() as InputOf<Id>;
        if (about.act) return about.act(asking, given, options);
        if (about.asks && options.yes !== true) await confirmed(asking.io, await about.asks(asking, given));
        const { input = given, body } = (await about.before?.(asking, given, options)) ?? {};
        const { value, text } = await ask(asking, id, input, body);
        return tell(asking, text || "{}", () => about.show?.(asking.io, value, { input, options, text }));
      }),
    );
  };

type Line = AnswerOf<"listProvenance">["data"][number];
export const provenanceList = listing<Line>(["at", "actor", "event_type", "action", "reason"]);

/** Below groups, candidates and redrive: who did what to one of them, and why. */
export const history = (of: "group" | "candidate" | "redrive"): AddCommand =>
  routeCommand("listProvenance", {
    name: "history",
    args: { [`${of}_id`]: `<${of}>` },
    flags: { group_id: null, candidate_id: null, redrive_id: null },
    show: provenanceList,
  });

/** Only these may meet a store that is not set up, and set it up. */
const SETS_UP: readonly RouteId[] = ["enqueue", "putTopic", "putRule", "putAction"];

const accessOf = (id: RouteId): Access => (SETS_UP.includes(id) ? "up" : ROUTES[id].permission === "read" ? "look" : "check");

function argsOf(path: string): Readonly<Record<string, string>> {
  if (path.includes("{namespace}")) return { topic: "<topic>" };
  const [, thing] = /([a-z]+)s\/\{id\}/.exec(path) ?? [];
  return thing === undefined ? {} : { id: thing === "message" ? "<id>" : `<${thing}>` };
}

function takes(command: Command, id: RouteId, about: Pick<RouteCommand<RouteId>, "args" | "flags" | "needs">): () => object {
  const { flags, needs = [] } = about;
  const { query, body }: Route = ROUTES[id];
  const fields = [...fieldsOf(query), ...fieldsOf(body?.schema)];
  const [, address] = ADDRESSES[id];
  const named = about.args ?? argsOf(address);
  for (const [field, shown] of Object.entries(named))
    command.argument(shown, "", argumentReader(field, shown, fields.find(({ name }) => name === field)?.schema));
  const optional = fields.filter(({ name }) => flags !== null && flags?.[name] !== null && !Object.hasOwn(named, name));
  const options = optional.map(({ name, within, schema, required }) => {
    const option = optionOf(flags?.[name] ?? FLAGS[name] ?? name.replaceAll("_", "-"), schema);
    command.addOption(option.makeOptionMandatory(required || needs.includes(name)));
    return { name, within, attribute: option.attributeName() };
  });
  return () => {
    const input: Record<string, unknown> = {};
    for (const [i, field] of Object.keys(named).entries()) input[field] = command.processedArgs[i] as unknown;
    for (const { name, within, attribute } of options) {
      const value: unknown = command.getOptionValue(attribute);
      if (value !== undefined && within === null) input[name] = value;
      else if (value !== undefined) input[within as string] = { ...(input[within as string] as object), [name]: value };
    }
    if (!address.includes("{namespace}")) return input;
    const [namespace, name] = String(input.topic).split("/");
    return { namespace, name };
  };
}

interface Field {
  readonly name: string;
  readonly schema: z.ZodType;
  /** The object that it stands in; null: the query or the body itself. */
  readonly within: string | null;
  readonly required: boolean;
}

/** The fields of a query or body; those of an object inside stand beside the others. */
function fieldsOf(schema: z.ZodType | undefined, within: string | null = null): Field[] {
  const object = schema && innermost(schema);
  if (object?.type !== "object") return [];
  return (Object.entries((object as z.ZodObject).shape) as [string, z.ZodType][]).flatMap(([name, field]) => {
    const { type } = innermost(field);
    if (type === "object") return fieldsOf(field, name);
    const required = within === null && !field.safeParse(undefined).success;
    return type === "unknown" || type === "record" ? [] : [{ name, schema: field, within, required }];
  });
}

function optionOf(flag: string, schema: z.ZodType): Option {
  const inner = innermost(schema);
  const words = schema.description ?? inner.description ?? "";
  if (inner.type === "boolean") return new Option(`--${flag}`, words);
  const value = inner.type === "number" ? "n" : `${flag.replace(/.*-/, "")}${inner.type === "array" ? "..." : ""}`;
  const option = new Option(`--${flag} <${value}>`, words);
  return inner.type === "enum" ? option.choices(Object.keys((inner as z.ZodEnum).enum)) : option.argParser(readerOf(schema));
}

type Reader = (text: string, before?: unknown) => unknown;

function readerOf(schema: z.ZodType): Reader {
  const inner = innermost(schema);
  if (inner.type === "array") {
    const one = readerOf((inner as z.ZodArray<z.ZodType>).element);
    return (text, before) => [...((before as unknown[] | undefined) ?? []), one(text)];
  }
  const whole = (inner.def as { format?: string }).format === "safeint";
  return (text) => {
    const isNumber = inner.type === "number" && (whole ? /^-?[0-9]{1,15}$/ : /^-?[0-9]{1,9}(\.[0-9]{1,9})?$/).test(text);
    if (inner.type === "number" && !isNumber && schema.type !== "union")
      throw new InvalidArgumentError(`It must be a ${whole ? "whole " : ""}number.`);
    const value = isNumber ? Number(text) : text;
    const checked = check(schema, value);
    if (!checked.ok) throw new InvalidArgumentError(`It ${faultsText(checked.faults)}.`);
    return value;
  };
}

/** Groups and candidates have numbers, messages UUIDs, topics two names: one in the place of the other is said at once. */
function argumentReader(field: string, shown: string, schema: z.ZodType | undefined): Reader {
  if (field === "topic") return insist(isTopicName, "A topic's name is namespace/name, such as billing/finalize, in lower case.");
  const said = (kind: string, also = "") => `The id of a ${kind} is a number${also}: \`makegood ${kind}s list\` shows them.`;
  const isNumber = (text: string): boolean => /^[0-9]{1,15}$/.test(text);
  if (field === "id" && /candidate/.test(shown)) return insist(isNumber, said("candidate"));
  if (field === "id" && /group|into/.test(shown))
    return insist((text) => isNumber(text) || isUuid(text.toLowerCase()), said("group", ", or a failure_match_id"));
  const choices = /^<(\w+(?:\|\w+)+)>$/.exec(shown)?.[1]?.split("|");
  if (choices) return insist((text) => choices.includes(text), `It is one of ${choices.join(", ")}.`);
  return schema === undefined ? (text) => text : readerOf(schema);
}

const insist = (fits: (text: string) => boolean, words: string) => (text: string) => {
  if (fits(text)) return text;
  throw new InvalidArgumentError(words);
};
