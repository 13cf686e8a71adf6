/**
 * The door `makegood/inbox`: for receivers that keep their effects in PostgreSQL. It loads no driver and no store.
 */
export { createInbox, type Inbox, type InboxOptions, type Once, type OnceOptions, type PruneOptions } from "./inbox.ts";
