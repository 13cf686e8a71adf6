/** What ends on a day that is known before: certificates and tokens, two weeks ahead for a ticket and two days ahead for a page. */
import { type Alert, alert, type Group } from "./alert.ts";

const DAY = 86_400;

interface Words extends Pick<Alert, "means" | "look" | "act" | "over"> {
  readonly metric: string;
  /** Told apart by this label. */
  readonly by?: string;
  readonly what: string;
}

const ends = (name: string, severity: Alert["severity"], days: number, { metric, by, what, ...page }: Words): Alert => {
  // promtool's clock begins at 0.
  const at = (day: number) => ({ [by ? `${metric}{${by}="a/b"}` : metric]: `${day * DAY}x120` });
  return alert(name, severity, "10m", `min${by ? ` by (${by}) ` : ""}(${metric}) - time() < ${days * DAY}`, {
    ...page,
    summary: `${what} ends within ${days} days, or has ended`,
    fires: { series: at(days - 0.5), labels: by ? { [by]: "a/b" } : {} },
    quiet: { series: at(days + 1) },
  });
};

const CERTIFICATE: Words = {
  ...{ metric: "makegood_certificate_expires_timestamp_seconds", by: "topic", what: "The certificate of a receiver" },
  means:
    "From that moment on no connection to the receiver of the topic is accepted: its messages wait and are tried again, and are not lost.",
  look: "`makegood topics show <topic>` for the receiver; `makegood doctor --sinks` dials each and names those that end soon.",
  act: "Tell who runs the receiver to renew it. After it was renewed nothing is to be done here: it is seen at the next connection.",
  over: "The date of makegood_certificate_expires_timestamp_seconds is later. It is absent while no process connects to the receiver.",
};
const STORE: Words = {
  ...{ metric: "makegood_store_certificate_expires_timestamp_seconds", what: "The certificate of the store's server" },
  means:
    "From that moment on no new connection to PostgreSQL is accepted where certificates are verified: nothing is accepted or delivered.",
  look: "`makegood doctor` with DATABASE_URL says when it ends.",
  act: "Renew it where PostgreSQL runs and let it reload (`select pg_reload_conf()`); processes see it at their next connection.",
  over: "The date of makegood_store_certificate_expires_timestamp_seconds is later.",
};
const TOKEN: Words = {
  ...{ metric: "makegood_token_expires_timestamp_seconds", by: "token", what: "A token of the API" },
  means: "From that moment on requests with it are answered 401.",
  look: "The label token names it; `makegood doctor` where the server runs says when each ends.",
  act: "Add a new one under a second name, give it out, then take the old one out: docs/runbooks/rotate-keys-and-tokens.md.",
  over: "No process has a token that ends within the time.",
};

const alerts: readonly Alert[] = [
  ends("MakegoodCertificateExpires", "warning", 14, CERTIFICATE),
  ends("MakegoodCertificateExpiresSoon", "critical", 2, CERTIFICATE),
  ends("MakegoodStoreCertificateExpires", "warning", 14, STORE),
  ends("MakegoodStoreCertificateExpiresSoon", "critical", 2, STORE),
  ends("MakegoodTokenExpires", "warning", 14, TOKEN),
  ends("MakegoodTokenExpiresSoon", "critical", 2, TOKEN),
];

export const expiry: Group = { name: "makegood_expiry", alerts };
