/**
 * Every way in which something does not add up, by the word that reports, alerts and programs use: what it means and what to do about it.
 */
export interface Meaning {
  readonly means: string;
  readonly remedy: string;
}

const SHOW = "`makegood messages show <id>` says what is left of it";

export const DIVERGENCES: Readonly<Record<string, Meaning>> = {
  message_gone: {
    means: "accepted, and no longer here, although neither a delivery with its retention nor a person ended it",
    remedy: "bring it back from a backup or from the producer (`makegood verify --against` names what a producer still has)",
  },
  state_without_message: {
    means: "a row says where a message is, and the message itself is gone: it cannot be delivered",
    remedy: "bring the message back from a backup or from the producer, or delete the row that is left",
  },
  no_state: {
    means: "accepted, and neither waiting nor claimed, dead, ended or delivered: nothing will ever attempt it",
    remedy: `enqueue it again under its key, or bring its row back from a backup; ${SHOW}`,
  },
  state_doubled: {
    means: "in more than one state at once: it may be attempted again although it is settled",
    remedy: `find what wrote the second row, and delete the one that is wrong; ${SHOW}`,
  },
  payload_changed: {
    means: "the payload is not the one that was accepted",
    remedy: "bring the payload back from a backup or from the producer",
  },
  money_changed: {
    means: "the amount is not the one that was accepted",
    remedy: "compare the amounts with the producer's books before anything else is delivered",
  },
  ids_swapped: {
    means: "as many messages as were accepted, but not the same ones",
    remedy: "find the ids with `makegood verify --against` and the producer's own list",
  },
  more_than_accepted: {
    means: "more messages than were accepted: rows were written past every way in",
    remedy: "find what writes messages past enqueue: into the table `message`, or into Redis",
  },
  day_dropped: {
    means: "a day of messages is gone, and retention did not take it",
    remedy: "restore the day from a backup before anything else is pruned",
  },
  account_unbalanced: {
    means: "an account of conservation does not agree with itself: it was edited, or a pass has a defect",
    remedy: "compare with a backup of the accounts: the tables conservation_*, on Redis the keys books:*",
  },
  seal_edited: {
    means: "what was sealed is not as it was sealed",
    remedy: "compare with the witness and a backup: somewhere a person or a program has edited the accounts",
  },
  behind_witness: {
    means:
      "the store is behind what it said of itself before: it was restored to an earlier time, or a failover lost the last transactions",
    remedy:
      "find what was accepted since (`makegood verify --against` with the producers' lists) and have it enqueued again; then begin a new witness file",
  },
  witness_differs: {
    means: "the store remembers another past than its witness",
    remedy: "as for a restore: the store went back and went on from there",
  },
  journal_damaged: {
    means: "a journal has entries that cannot be read back",
    remedy: "`makegood journal list` shows where; what was in them has to come from the producer",
  },
  archive_damaged: {
    means: "what retention archived cannot be read back: a file is missing, cut off or changed, or its chain does not continue",
    remedy: "bring the file back from a backup; `makegood archive verify` looks at all of them again",
  },
  stream_only: {
    means: "dead letters stand in a Redis stream and not in the store, where people look for them",
    remedy: "`makegood streams archive` makes each a dead letter of the store; then find out why it was not one",
  },
  usage_unbalanced: {
    means: "what was debited, what was reported and what is to be delivered of turns are not the same",
    remedy: "finalize or replay the turns that are named; the ledger says which side is missing",
  },
};

export const meaningOf = (kind: string): Meaning =>
  DIVERGENCES[kind] ?? { means: "something does not add up", remedy: "look at the detail" };
