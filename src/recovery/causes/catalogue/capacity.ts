/** Too much at once, more than was paid for, and what runs full: rates, quotas, memory, disks. */
import { signatures } from "../signature.ts";

export const CAPACITY = signatures(String.raw`
per_time overload_or_quota 0.96 more came in a time than the receiver takes: slower it works
  (limit|exceeded|quota|maximum|max|allowed|rate|only) … per[ _]?(second|sec|minute|min)
  (calls|requests|queries|messages|tokens|operations|writes|reads|emails|transactions|tps|qps|rpm|tpm) (per|a|in a) (few )?(second|sec|minute|min)s?
  secondary rate|token rate
  rate ?limit(s|ed|ing|er)?( was| is| has been)? (exceeded|reached|hit|error|exception|policy)
  exceeded … rate ?limits?|retry (after|in) \d+|spike arrest|provisioned throughput
  maximum sending rate|reduce (your )?(\w+ )?rates?
rate overload_or_quota 0.93 more came at once than the receiver takes: slower it works
  codes: RATE_LIMITED RATE_LIMIT RATE_LIMIT_EXCEEDED TOO_MANY_REQUESTS THROTTLING THROTTLED THROTTLING_EXCEPTION SLOW_DOWN REQUEST_LIMIT_EXCEEDED USER_RATE_LIMIT_EXCEEDED
  rate ?limit(s|ed|ing|er)?
  too many (requests|calls|tokens|existing|binds|messages|attempts|api calls|queries|concurrent|simultaneous|parallel|pending|outstanding|operations|writes|updates|events|emails|recent)
  throttl(e|ed|es|ing)|slow ?down|rate exceeded
  (request|call|query|send|sending|message|write|read|operation) rate
  (request|api|call|query|burst|concurrency|frequency|velocity|application request|concurrent \w+|requests) limits? … (reached|exceeded|hit|exceed)
  (exceed(s|ed|ing)?|reached|hit|over) … (concurrency|concurrent|request|frequency|throughput|api) … limits?
  limit exceeded for … requests|too (quickly|fast|frequently|often)|faster than|flood(ing)?|please wait
  wait (\d+|a|and|before) \w+|simultaneous connections|throughput … exceed(s|ed)?|enhance your calm
  wait … before (you )?(try|retry|send|mak|request)\w*
limit_word overload_or_quota 0.72 a limit was reached
  limits? (was |has been |is )?(exceeded|reached|hit)|exceeded … limits?
overloaded overload_or_quota 0.93 the receiver has more work than it can do
  codes: OVERLOADED OVERLOADED_ERROR SERVER_BUSY SERVER_IS_BUSY SERVICE_BUSY
  over ?load(ed|ing)?|(over|at|exceeds? (the )?current) capacity
  (server|system|service|broker|cluster|node|database|it|is|currently) (is )?(too |very )?busy|serv(er|ice) busy
  (high|heavy|excessive|unusual|increased) (\w+ )?(load|demand|traffic|volume|usage)
  rejected … (execution|by load|queue)|execution rejected
  (queue|q|buffer|channel|topic|stream|inbox|pipeline) … (is )?(full|overflow)|q full|backlog|load shed(ding)?
  back ?pressure|shed(ding)? load|(in)?sufficient … capacity
  capacity … (insufficient|not available|unavailable|exceeded|constraints?)|no capacity|out of capacity
  too many … (parts|segments|tasks|jobs|threads)|slower than|lagging
spent overload_or_quota.spent 0.95 what was paid for or allowed is used up: it has to be raised
  codes: INSUFFICIENT_QUOTA QUOTA_EXCEEDED BILLING_HARD_LIMIT_REACHED BILLING_NOT_ACTIVE INSUFFICIENT_BALANCE LIMIT_EXCEEDED_EXCEPTION
  (in ?|not have |not |have no |no )sufficient (\w+ )?(quota|credits?|account balance|balance)
  not (have )?enough (\w+ )?(credits?|balance|quota)|used (up|all)|ran out of|run out of|quota violat\w+
  (out of|no (more )?|not enough|purchase|buy|add|run out of|remaining) (\w+ )?(credits?|quota)
  (credit|account|wallet|prepaid) balance|balance (is )?(too low|insufficient|exhausted)|top ?up
  (exceed(s|ed|ing)?|over|reached|hit|used up|exhausted|used all|consumed) … (quota|allowance|allotment|plan limit|billing \w+|monthly \w+|daily \w+|plan|subscription limit|free tier|trial \w+|spend\w* \w+|usage limit|account limit)
  quota … (exceeded|exhausted|reached|used|limit)
  (monthly|daily|annual|yearly|plan|free tier|trial|usage|spend|spending|billing|account|organi[sz]ation|seat|license|storage|subscription) … (limit|quota|cap|allowance) … (reached|exceeded|hit|exhausted)
  limit … per (day|month)|per (day|month) … (limit|exceeded|quota)
  (upgrade|change|check) (your |the )?(\w+ )?(plan|subscription|tier|billing)|plan (does not|doesnt|limit)\w*
  (current|your) plan|billing (is|has|details|account)|payment (is )?(required|overdue|past due)
  trial … (expired|ended|over)|unpaid|overdue|hard limit|license … (expired|limit|exceeded)
full resource_exhausted 0.96 it runs full: room has to be made
  codes: 53100 ENOSPC EDQUOT EROFS
  write protect(ed)?|read only (media|volume|disk)|(not able|unable|can ?not|failed) … (persist|save|write) … (disk|storage|file)
  no space left|enospc
  (disk|storage|drive|volume|file ?system|tablespace|table|partition|database) … (is |was |are )?(full|exhausted|quota|space exceeded)
  (not enough|insufficient|out of|low on|lack of|no( more)?|free) (\w+ ){0,2}(disk|storage|space|drive|inodes)
  space exceeded|(disk|storage|drive) (usage|threshold|watermark|space|limit|quota)|watermark|minimum free
  unable to (extend|allocate) (\w+ )?(table|index|segment|extent|space)|could not (extend|write) (file|block)
  maxmemory|used memory|read only file ?system|database or disk is full|memory … (policy|noeviction)
mailbox_full resource_exhausted.passing 0.97 the mailbox is full for now
  (mailbox|inbox|account|recipient|user) … (full|over (its |their )?quota)|over ?quota
  exceeded (storage|mailbox) \w+|45[0-2] 4 2 2|insufficient system (storage|resources)
memory resource_exhausted.process 0.96 the receiver's process has no memory, threads or files left
  codes: 53200 ENOMEM EMFILE ENFILE EAGAIN
  out ?of ?memory|oom( ?killed| killer)?|heap (space|out|limit|size)
  (can ?not|cant|unable to|failed to|could not) allocate
  memory (pool |is )?(exhausted|limit|exceeded|quota|pressure)|allowed memory|gc overhead
  insufficient (memory|system resources|resources)|(allocation|allocate) … (more than|limit|failed)
  not enough memory|memory … (limit|exceeded|exhausted)|circuit breaking exception|data too large … (limit|heap)
  (create|start|fork|spawn) … (thread|process)|(native |too many |worker )threads?( limit| exhausted)
  too many (open files|processes|files open)|file (descriptor|handle)s? (limit|exhausted)|emfile|enfile
  resource temporarily unavailable|ports? exhausted|exit code 137|sigkill|cannot assign requested address
`);
