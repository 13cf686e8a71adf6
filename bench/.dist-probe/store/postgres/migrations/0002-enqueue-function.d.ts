import type { Migration } from "./migration.ts";
export declare const enqueueFunction: Migration;
/** The wake channel of a schema, as an SQL literal: the schema's own name, so that two schemas do not wake each other. */
export declare function channelLiteral(schema: string): string;
export declare function channelName(schema: string): string;
