/**
 * What a message is, at each point of its walk: as handed to a store, as claimed by a worker, as read back by a person.
 * The payload is text, always: the exact bytes that were accepted are the bytes that are delivered (I8).
 */
export {};
//# sourceMappingURL=message.js.map