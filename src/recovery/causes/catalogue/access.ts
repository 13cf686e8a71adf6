/** Credentials, rights, certificates and settings: what nobody but an operator can put right. */
import { signatures } from "../signature.ts";

export const ACCESS = signatures(String.raw`
handshake_late timeout 0.98 the handshake got no answer in time
  handshake … (time ?out|timed out)|(time ?out|timed out) … handshake|tls (\w+ )?time ?out
certificate config_or_tls 0.97 the two sides do not agree on a certificate or a protocol
  codes: CERT_HAS_EXPIRED DEPTH_ZERO_SELF_SIGNED_CERT UNABLE_TO_VERIFY_LEAF_SIGNATURE SELF_SIGNED_CERT_IN_CHAIN ERR_TLS_CERT_ALTNAME_INVALID UNABLE_TO_GET_ISSUER_CERT_LOCALLY
  look like … (tls|ssl)|envelope routines|openssl
  (certificate|cert|certs|certificates|x509) … (expired|expire|verif\w+|invalid|untrusted|trusted|revoked|unknown|mismatch|validation|signed|required|not valid|not yet valid|rejected|error|problem|authority|chain|path|has|is|name|common name|altnames?)
  (verify|verifying|validate|trust|bad|invalid|expired|untrusted|unknown|wrong|missing|no required) … (certificate|cert|ca|issuer|x509)
  self signed|issuer certificate|altnames?|trust anchor|pkix|certificate unknown|x509|tls … verif\w+
  (ssl|tls|https) … (error|failed|failure|alert|mismatch|routines|unsupported|not supported|required|version|connect)
  ssl (connect|handshake|routines|exception|error|peer)|ssl\w* (exception|error)
  handshake (failure|failed|error|exception|alert)|wrong version number
  (fatal )?alert … (protocol|handshake|unknown|bad|certificate)|no (shared cipher|cipher)|plain http
  http request (was sent )?to (an )?https|https? … (port|required)|ssl (is )?(off|required|not enabled)
  requires? (ssl|tls|https)
clock config_or_tls 0.97 the two clocks do not agree
  (time|clock|timestamp|date) (too )?(is |are )?(\w+ )?(skew\w*|drift)|skew\w*
  (request|current|server) time … (too large|difference|differs)|time … too (large|far|old)
  timestamp … (expired|outside|too old|not within|tolerance|in the future)|used before issued|nbf
user_consent auth_or_permission.user 0.96 only the user it belongs to can sign in or agree again
  (user|customer|end user|owner|cardholder|account holder) … (log ?in|re ?authenticate|authenticate|consent|re ?connect|re ?authori[sz]e|grant|verify)\w* … (again|required|needed|is required|must|to)
  (user )?login required|re ?(authori[sz]ation|authentication|consent|login|link)\w* (is )?(required|needed)
  interaction required|consent (is )?(required|revoked|expired|missing|withdrawn)|mfa (is )?required
credentials auth_or_permission 0.94 the receiver does not take the credentials
  codes: 28P01 28000 INVALID_GRANT INVALID_CLIENT INVALID_TOKEN UNAUTHENTICATED AUTHENTICATION_ERROR INVALID_API_KEY EXPIRED_TOKEN INVALID_CREDENTIALS EAUTH INVALID_SESSION_ID
  (token|key|credentials|api ?key|password|authorization|app|client) … (blocked|must be|not provided|not supplied|not specified|was not sent)|grant ?type|(you|your ip|your request|your address) … blocked
  (invalid|bad|incorrect|wrong|expired|revoked|missing|no|unknown|malformed|inactive|unrecogni[sz]ed|rejected|invalidated|deactivated) … (credentials?|password|token|api ?key|access key|apikey|secret|session|jwt|login|signature|bearer|oauth|authentication|client id|client secret|key id|license key|user ?name|certificate credentials|refresh token|auth\w*)
  (token|session|credentials?|api ?key|access key|key|password|secret|grant|jwt|assertion|cookie|signature|login|authorization code) … (expired|revoked|invalid|not valid|inactive|rejected|incorrect|disabled|not match|mismatch|not accepted|not recogni[sz]ed|deleted|missing|required|wrong|not found|does not exist|has been used)
  authenticat(ion|e|ing) … (failed|failure|error|required|is required|invalid|credentials|rejected|unsuccessful|exception|refused|denied|mechanism)
  (not|un|could not be|failed to|unable to|cannot) authenticated?|unauthenticated
  (log ?in|log ?on|sign ?in|bind|auth|sasl) … (failed|denied|refused|rejected|error|incorrect|required)|noauth
  not logged in
  (failed|unable|could not|cannot) … (fetch|obtain|refresh|acquire|get|validate) … (token|credentials)
  signature … (mismatch|does not match|not match|invalid|verification|verify|verified|missing|failed)
  (verify|verification of|verifying) … (signature|hmac|token)|hmac|no signatures found
  not accepted … (username|password)|(user ?name|password) … not accepted|535 5 7 \d|530 5 7 0|error code 49
  wrongpass|publickey
rights auth_or_permission 0.93 the receiver knows the caller and does not allow this
  codes: 42501 EACCES EPERM PERMISSION_DENIED ACCESS_DENIED INSUFFICIENT_SCOPE ACCESS_DENIED_EXCEPTION AUTHORIZATION_FAILED INSUFFICIENT_PERMISSIONS UNAUTHORIZED_CLIENT
  (un|not )authori[sz]ed( to| for| access)?
  authori[sz]ation … (failed|failure|error|denied|exception|required|policy)
  access (is |was |to \w+ )?(denied|refused|forbidden|not allowed|restricted)|access refused
  permissions? (\w+ )?(denied|error|required|missing|issue|check)|(not|no) permission|operation not permitted
  eacces|eperm
  (insufficient|missing|lacks?|lacking|no|not have|without|requires?|required|not enough|needs?|not granted|inadequate|grant) … (permissions?|privileges?|scopes?|roles?|access|rights|entitlements?)
  (is |are )?not (allowed|permitted|entitled|privileged) to
  (does ?n[o]?t|do ?n[o]?t|not) have (\w+ ){0,3}(access|rights?|ability|authority)
  forbidden … (user|cannot|service account|rbac|acl|policy)|rbac|acl|noperm|cannot … resource … (in|at)
  is forbidden user|iam|(role|policy|principal) … (allow|deny|denies|authori[sz]ed)|explicit deny|command denied
  not in (the )?sudoers|privilege violation|relaying? (denied|not permitted|access)
not_enabled config_or_tls 0.95 something is not switched on, verified or set up for us
  (only|not|never) approved|(sign|accept|agree to) … terms|terms of service
  (not|isnt|arent|has ?n[o]?t|never) (been |currently |yet )*(enabled|configured|activated|verified|provisioned|set ?up|onboarded|whitelisted|allow ?listed|initiali[sz]ed for|approved for|live|certified|installed)
  (must|needs to|should|has to) be (enabled|configured|activated|verified|whitelisted|registered)
  (enable|activate|configure|turn on|switch on) (it|this|the) \w+
  (api|feature|service|integration|webhook|subscription|endpoint|region|product|module|function|channel|app|application|topic|rule|location|currency|payment method|site) … (is|was|has been|are) (currently )?(disabled|turned off|switched off|deactivated|not active|inactive|not supported|not available (for|in))
  has not been used in project|not available in your|unavailable for your
  not supported (in|for) (your|this) (\w+ )?(account|region|country|plan|merchant)
  (mis|bad |invalid |missing |wrong |incorrect |incomplete )config\w*
  config\w* (error|problem|issue|is|missing|invalid|exception|value)|environment variable|white ?list\w*
  allow ?list(ed)?|pre ?approved
  (complete|finish|verify) … (set ?up|onboarding|registration|your (account|domain|email|identity))
  set ?up is (in)?complete|not assigned|not provisioned|not (accepted|allowed) for (your|this)|regulations
  missing (setting|env)|inequivalent|(incompatible|different) (arguments|settings|options)|no … entry for host
  hba conf|disallowed host|blocked host|allowed hosts|invalid (http )?host|host header|csrf|cors|cross origin
  (ip|ip address|origin|domain|sender|host|address|url) … (not|isnt|is not|un) ?(allowed|whitelisted|white listed|allow ?listed|permitted|authori[sz]ed|verified|trusted|registered)
  redirect uri|callback url|sender (identity|domain|address|signature)|unable to relay|relay|unverified
  (your )?firewall|ssrf
switched_off config_or_tls 0.82 something is switched off
  inhibited|quarantined
  (is|was|has been|are|been|currently) (suspended|disabled|paused|deactivated|turned off|switched off|not enabled|de ?provisioned)
retired config_or_tls 0.94 the interface it was sent to is not there any more, or not in this version
  (api|version|endpoint|method|interface|protocol|operation|resource|service|sdk|client) … (deprecated|sunset|retired|discontinued|decommissioned|no longer|removed|unsupported|not supported|shut ?down|end of life)
  (unsupported|deprecated|unknown|invalid|incompatible|obsolete) (\w+ )?(api|protocol|client|server)? ?version
  upgrade (required|to (the )?(latest|version|api))|please migrate
  (moved|redirect\w*) (permanently|temporarily|to)|no longer active|update your (client|sdk|integration)
  wrong (region|endpoint|host|environment|port)|(must|should) be addressed using|permanent redirect
  incorrect region
denied_word auth_or_permission 0.62 the receiver does not allow it
  disallowed
  forbidden|denied|unauthori[sz]ed|not allowed|security|permissions?|credentials?
`);
