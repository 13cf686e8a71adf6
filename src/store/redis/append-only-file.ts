/**
 * The append-only file as it is at this moment, which no setting tells: whether it can be written, whether it is being rewritten,
 * whether it has been read to its end; and what each of these means for what was accepted.
 */
import type { Finding } from "./finding.ts";

/** `info`: the lines of INFO persistence. */
export function appendOnlyFile(info: ReadonlyMap<string, string>): Finding {
  const finding = (verdict: Finding["verdict"], value: string | null, detail = "", required = false): Finding => ({
    name: "append-only-file",
    verdict,
    value,
    attested: false,
    required,
    detail,
  });
  const said = (name: string, value: string): boolean => info.get(name) === value;
  if (!info.has("aof_enabled")) {
    return finding("unknown", null, "INFO persistence is refused, so nobody can tell whether it is written");
  }
  if (said("loading", "1")) {
    return finding("failed", "loading", "it is still being read: until its end nothing is accepted and not all is there", true);
  }
  if (said("aof_enabled", "0")) return finding("failed", "none", "there is none: see appendonly");
  if (!said("aof_last_write_status", "ok")) {
    const what = "the last write to it failed: what came since is only in memory, and new messages are refused; look at the disk";
    return finding("failed", "not written", what, true);
  }
  if (said("aof_rewrite_in_progress", "1") || said("aof_rewrite_scheduled", "1")) {
    const when = said("aof_rewrite_in_progress", "1") ? "in progress" : "scheduled";
    return finding(
      "verified",
      `rewrite ${when}`,
      "what is accepted meanwhile is appended as always; the disk and a fork are busy",
    );
  }
  if (!said("aof_last_bgrewrite_status", "ok")) {
    const what = "its last rewrite failed: it is still appended to and nothing is lost, but it grows and a restart takes longer";
    return finding("failed", "not rewritten", `${what}; look at the disk and the memory for a fork`);
  }
  return finding("verified", "written");
}
