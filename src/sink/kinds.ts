/**
 * The one list of the kinds of sinks. A new kind is its own file and a line here; checks, types and the making of sinks
 * follow from the list.
 */
import type { SinkConfig } from "../message/topic.ts";
import { inCode } from "./function.ts";
import { http } from "./http.ts";
import { notify } from "./notify.ts";
import type { KindSetting, SinkKindDefinition } from "./sink-kind.ts";
import { webhook } from "./webhook.ts";

export const KINDS = { http, webhook, notify, function: inCode } as const satisfies Record<string, SinkKindDefinition>;

type Kinds = typeof KINDS;
type Takes<Kind extends keyof Kinds> = Kinds[Kind]["takes"];

type NamesOf<Kind extends keyof Kinds, How> = {
  [Name in keyof Takes<Kind>]: Takes<Kind>[Name] extends How ? Name : never;
}[keyof Takes<Kind>] &
  KindSetting;

/** A sink as code declares it: each kind with the settings that it needs or takes, and no others. */
export type DeclaredSink = {
  [Kind in keyof Kinds]: { readonly kind: Kind } & Omit<SinkConfig, "kind" | KindSetting> & {
      readonly [Name in NamesOf<Kind, "needed">]: NonNullable<SinkConfig[Name]>;
    } & { readonly [Name in NamesOf<Kind, "allowed">]?: SinkConfig[Name] } & {
      readonly [Name in Exclude<KindSetting, keyof Takes<Kind>>]?: undefined;
    };
}[keyof Kinds];
