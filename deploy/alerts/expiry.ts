/** What ends on a day that is known before: certificates of receivers and tokens, two weeks ahead for a ticket and two days ahead for a page. */
import { type Alert, alert, type Group } from "./alert.ts";

const DAY = 86_400;
const METRICS = {
  certificate: "makegood_certificate_expires_timestamp_seconds",
  token: "makegood_token_expires_timestamp_seconds",
};

type Words = Pick<Alert, "means" | "look" | "act" | "over"> & {
  readonly of: keyof typeof METRICS;
  readonly by: string;
  readonly what: string;
};

/** promtool's clock begins at 0. */
const at = ({ of, by }: Words, days: number) => ({ [`${METRICS[of]}{${by}="a/b"}`]: `${days * DAY}x120` });
const ends = (name: string, severity: Alert["severity"], days: number, words: Words): Alert => {
  const { of, by, what, ...page } = words;
  return alert(name, severity, "10m", `min by (${by}) (${METRICS[of]}) - time() < ${days * DAY}`, {
    ...page,
    summary: `${what} ends within ${days} days, or has ended`,
    fires: { series: at(words, days - 0.5), labels: { [by]: "a/b" } },
    quiet: { series: at(words, days + 1) },
  });
};

const CERTIFICATE: Words = {
  ...{ of: "certificate", by: "topic", what: "The certificate of a receiver" },
  means:
    "From that moment on no connection to the receiver of the topic is accepted: its messages wait and are tried again, and are not lost.",
  look: "`makegood topics show <topic>` for the receiver; `makegood doctor --sinks` dials each and names those that end soon.",
  act: "Tell who runs the receiver to renew it. After it was renewed nothing is to be done here: it is seen at the next connection.",
  over: "The date of makegood_certificate_expires_timestamp_seconds is later. It is absent while no process connects to the receiver.",
};
const TOKEN: Words = {
  ...{ of: "token", by: "token", what: "A token of the API" },
  means: "From that moment on requests with it are answered 401.",
  look: "The label token names it; `makegood doctor` where the server runs says when each ends.",
  act: "Add a new one under a second name, give it out, then take the old one out: docs/runbooks/rotate-keys-and-tokens.md.",
  over: "No process has a token that ends within the time.",
};

const alerts: readonly Alert[] = [
  ends("MakegoodCertificateExpires", "warning", 14, CERTIFICATE),
  ends("MakegoodCertificateExpiresSoon", "critical", 2, CERTIFICATE),
  ends("MakegoodTokenExpires", "warning", 14, TOKEN),
  ends("MakegoodTokenExpiresSoon", "critical", 2, TOKEN),
];

export const expiry: Group = { name: "makegood_expiry", alerts };
