/** SQL that several folders of recovery share. */

/** `g` and all that was merged into it. */
export const membersOf = (s: string, g: string) =>
  `(select ${g} as id union all select m.id from ${s}.recovery_group m where m.merged_into = ${g})`;

/** A dead letter that is open by a death that was counted in a group. */
export const OPEN_IN_GROUP = "d.resolution = 0 and d.ingested_attempts = d.attempts";

/** Of group `g` and what was merged into it: failures that other services reported and that have not ended, as `o`. */
export const openReportsOf = (s: string, g: string) => `${membersOf(s, g)} x join ${s}.recovery_group k on k.id = x.id
    join ${s}.recovery_occurrence o on o.group_id = x.id and o.message_id is null and o.sent_id is null and o.id > k.reports_closed`;
