/** What the receiver understood and will not do, and what was done already: payments, policies, people who do not want it. */
import { signatures } from "../signature.ts";

export const BUSINESS = signatures(String.raw`
key_reused bug_in_sender 0.98 one idempotency key was used for two different requests
  codes: IDEMPOTENCY_ERROR IDEMPOTENCY_KEY_REUSED IDEMPOTENCY_CONFLICT IDEMPOTENT_PARAMETER_MISMATCH
  idempoten\w+ .*(different|reused|mismatch|same parameters|another (request|payload|body)|does not match|first used)
  (different|mismatch\w*) .*(same )?idempoten\w+
declined business_refusal 0.96 the bank or the payer refuses the payment
  codes: CARD_DECLINED INSUFFICIENT_FUNDS EXPIRED_CARD DO_NOT_HONOR INSTRUMENT_DECLINED PAYMENT_DECLINED CARD_ERROR REFUSED DECLINED
  refer to (card )?issuer|(call|contact) (the |your )?(issuer|bank|card issuer|issuing bank)
  declined?|do not hono[u]?r|insufficient funds|not sufficient funds
  (card|instrument|payment method|bank account|iban|mandate) … (expired|rejected|refused|blocked|not supported|stolen|lost|restricted|cancell?ed|closed|declined)
  expired card
  (payment|transaction|transfer|charge|payout|debit) … (refused|rejected|not permitted|blocked|denied|not approved)
  refused by|(3d secure|3ds|strong customer authentication|sca)|pick ?up card
  authentication required … (payment|card)|account closed|fraud\w*
  risk (threshold|check|rule|score|decision|reject\w+|control)|(suspected|high) risk|sanction\w*|aml|kyc
  blacklist\w*|block ?list\w*|velocity
their_account business_refusal 0.965 the customer's own account does not take it
  (customer|payer|recipient|buyer|cardholder|payee|beneficiary|bank|debtor|subscriber) … (account|card|mandate|wallet) … (disabled|closed|blocked|suspended|frozen|inactive|deactivated|expired|not active)
  (payer|payee|beneficiary|debtor) … (closed|blocked|not active|refused|rejected)
  (number|destination|recipient) … (barred|blacklisted|blocked)
unwanted business_refusal.unwanted 0.96 the recipient does not want it: there is nobody to deliver to
  un ?subscribed?|opt(ed)? ?out
  (blocked|muted|deactivated|disabled|stopped) by (the )?(user|recipient|subscriber|customer|owner)
  suppress(ed|ion)( list)?|(hard )?bounced?|spam complaint
  (recipient|user|subscriber|contact|address|number|subscription|destination|member) … (inactive|opted|blocked|blacklisted|unsubscribed|not subscribed|deactivated|bounced|do not (contact|disturb|call))
  inactive (recipient|address|subscriber|user|number)\w*|stop (message|request|keyword)|replied (with )?stop
  do not (contact|disturb|call|email)
policy business_refusal 0.94 a policy of the receiver forbids this content or this case
  codes: CONTENT_FILTER CONTENT_POLICY_VIOLATION POLICY_VIOLATION CONTENT_FILTERED
  content (management )?(policy|filter\w*|moderation|violation|restrict\w+)|filtered
  safety (system|setting|filter|polic|reason)\w*|moderation
  (violat|against|breach)\w* … (policy|policies|terms|guidelines|rules|standards|compliance)
  (policy|compliance|terms) … (violat|reject|block|prevent|reason|restrict)\w*|local policy
  (detected|identified|flagged|classified|marked|considered|looks|blocked|rejected) … (spam|abus\w+|suspicious|harmful|malicious|phishing|virus|malware)
  spam(my)?|prohibited|legal reasons|embargo\w*|copyright|dmca|age restrict\w+|virus|reputation|dmarc|spf|dkim
  message (was )?rejected
not_in_this_state business_refusal 0.9 what it is about is in a state that does not allow this
  (become|be|go|goes) negative|negative balance|overdrawn
  (add|post|append|write|send|reply|modify|update|change|attach|assign) … (closed|locked|archived|completed|cancell?ed|finished|finali[sz]ed) \w+|(is|was) (closed|finali[sz]ed|locked for editing|cancell?ed)$|does ?n[o]?t accept|not accept(ed)? (this|the|such)
  (can ?not|cant|could not|may not|unable to|is not|not) (be )?(refund|cancel|captur|void|modif|updat|chang|complet|edit|revers|delet|amend|process|fulfil|ship|transition|reopen|settl|proceed|book|reserv|schedul)\w* … (because|since|when|after|as|in|while|due|anymore|any more|until|unless|once|order|payment|transaction|invoice|record|with)
  (invalid|illegal|wrong|incorrect|unexpected|current|not in a|not in an|in its current) … (state|status|transition|stage|phase)
  (state|status) … (does ?n[o]?t (allow|permit)|not allow|invalid|must be|is not|prevents|cannot)
  not (allowed|possible|permitted) (in|for|while|when|after|at) (\w+ )?(the |this )?(current )?(state|status|stage|order|transaction)
  (amount|refund|total|quantity|value|transfer|withdrawal|payment) … (exceeds?|exceeding|greater than|more than|higher than|over|above|larger than) … (available|remaining|balance|refundable|authori[sz]ed|original|limit|amount|captured|total|allowed|maximum)
  (exceeds?|exceeding|over) … (available|remaining|refundable|authori[sz]ed|original|captured|credit|transaction|transfer|daily) (\w+ )?(amount|balance|limit|stock|quantity)
  (not|in|no longer) ?(eligible|refundable|cancell?able|returnable|redeemable|valid for)|ineligible
  (out of|insufficient|no|not enough|low) (stock|inventory|availability|seats|rooms)|sold out|not in stock
  archived|read only$|is read only
  (window|period|deadline|offer|quote|order|cart|link|authorization|coupon|voucher|reservation|slot|invitation|promo\w*|grace period|session for this) (has |is |was )?(expired|closed|passed|ended|elapsed|over|no longer)
  more than \d+ (hours|days|minutes)|(closed|locked) (period|book|month|year|invoice)|business rule
  rejected by (the )?(bank|processor|issuer|carrier|recipient|merchant|provider|business)|not accepted by
  minimum order|(merchant|customer|account|user) (is )?not (eligible|approved|permitted|allowed)
account business_refusal.account 0.95 our own account or subscription is closed, frozen or not paid
  (account|subscription|shop|store|merchant|tenant|organi[sz]ation|workspace|project|site|team|company|license|customer account|instance|plan|membership) … (suspended|disabled|deactivated|frozen|terminated|on hold|past due|delinquent|banned|not active|inactive|locked out|restricted|under review|expired|blocked|lapsed|unavailable|de ?activated|re ?enabled)
  unavailable (shop|store|account)
  (suspended|disabled|frozen|deactivated|inactive|banned|terminated) … (account|subscription|shop|store|merchant|tenant|organi[sz]ation|project)
  account … (closed|locked|cancell?ed)
done conflict_or_duplicate.done 0.94 what it asks for has been done already
  codes: ALREADY_EXISTS EEXIST DUPLICATE DUPLICATE_REQUEST DUPLICATE_ENTRY CONFLICT_DUPLICATE
  already … (exists?|existing|processed|completed?|captured|refunded|paid|settled|cancell?ed|registered|subscribed|sent|delivered|created|used|taken|in use|submitted|done|closed|confirmed|approved|member|shipped|fulfilled|voided|charged|applied|received|archived|deleted|removed|merged|finali[sz]ed|active|enabled|assigned|succeeded|handled|posted|accepted|redeemed|claimed|scheduled|uploaded|reversed|acknowledged|authori[sz]ed|added|invited|linked|connected|associated|recorded|imported|consumed|verified|disputed|charged back|inactive|joined|following|attached|present|resolved|published|declared|terminated|have|has|been \w+)
  (exists?|existing) already|duplicat(e|ed|es|ion)
  (name|email|username|number|slug|id|handle) (\w+ )?(is |has been )?(taken|in use)|eexist
  previously (processed|submitted|used|completed|paid|sent)|nothing to (do|update|commit|refund|capture)
  no changes?
conflict_word conflict_or_duplicate 0.62 it collides with something else
  conflict(s|ed|ing)?|precondition failed|condition\w* … failed
`);
