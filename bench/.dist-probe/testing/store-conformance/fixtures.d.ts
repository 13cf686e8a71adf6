import type { MessageView, NewMessage, Ordering, Suspicion } from "../../message/message.ts";
import type { Settlement } from "../../message/settlement.ts";
import type { TopicDefinition } from "../../message/topic.ts";
import type { Store } from "../../store/store.ts";
export declare const SECOND = 1000;
export declare const MINUTE: number;
export declare const DAY: number;
export declare const PLAIN = "test/plain";
export declare const OTHER = "other/plain";
export declare const KEYED = "test/keyed";
export declare const STRICT = "test/strict";
export declare function definition(name: string, ordering?: Ordering): TopicDefinition;
export declare const TOPICS: readonly TopicDefinition[];
export declare function hashOf(payload: string): string;
export declare function newMessage(id: string, fields?: Partial<NewMessage>): NewMessage;
export declare const DELIVERED: Settlement;
export declare const RELEASE: Settlement;
export declare function retry(delayMs?: number, counted?: boolean, suspicion?: Suspicion): Settlement;
export declare function dead(blocksOrder?: boolean): Settlement;
export declare function hold(counted?: boolean): Settlement;
/** The message, which must be there. */
export declare function seen(store: Store, id: string): Promise<MessageView>;
/** How many messages there are, of one status or of all. */
export declare function countOf(store: Store, status?: MessageView["status"]): Promise<number>;
/** The call must be refused with this code of the one error class. */
export declare function refused(code: string, call: () => Promise<unknown>): Promise<void>;
/** For comparing what has no order. */
export declare function sorted(texts: readonly string[]): string[];
export declare const idsOf: (messages: readonly {
    readonly id: string;
}[]) => string[];
export declare function shuffled<T>(items: readonly T[]): T[];
/** True with this probability. */
export declare const chance: (probability: number) => boolean;
