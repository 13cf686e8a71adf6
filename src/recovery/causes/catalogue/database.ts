/** Databases, brokers and whatever else keeps state: locks, versions, duplicates, leaders, schemas. */
import { signatures } from "../signature.ts";

export const DATABASE = signatures(String.raw`
in_doubt conflict_or_duplicate.partial 0.97 a part was applied and a part was not, or nobody knows
  codes: 40003 08007
  transaction … in doubt|in ?doubt transaction|heuristic (rollback|commit|mixed|hazard)\w*
  partial(ly)? (failure|failed|applied|committed|completed|succeeded|processed|written|updated|posted|success)
  roll ?back … (failed|incomplete|not complete)|failed to roll ?back|could not (be )?(rolled|roll) back
  cannot roll ?back|(commit|transaction|completion) … (result|outcome|status|state) … unknown
  unknown (commit|transaction) \w+|completion unknown
  \d+ (of|out of) \d+ … (applied|written|posted|inserted|updated|succeeded|processed|created|failed)|unbalanced
  out of balance|left … (inconsistent|half)|half (applied|written|completed)|inconsistent state
  compensat(ion|ing) (\w+ )?failed
deadlock transient_db 0.97 the database ended a deadlock by giving up this transaction
  codes: 40P01
  dead ?lock(ed|s)?
serialization transient_db 0.96 transactions collided and this one has to run again
  codes: 40001
  could not serialize|serializ\w+ (failure|error|conflict)|write conflict|snapshot (isolation|too old|conflict)
  (restart|rerun|retry) (the |this |your )?(txn|transaction)|transaction retry\w*|txn … retry
  transaction … (aborted due to|conflict(ed|s)?)|(too much|lock|write|transaction) contention
  try restarting transaction|transient transaction error|conflicted with another (operation|transaction)
  operation conflict(ed)?
lock transient_db 0.95 another one holds the lock for now
  codes: 55P03 SQLITE_BUSY SQLITE_LOCKED
  lock (wait |request )?(time ?out|timed out)|lock wait|lock not available|lock (has |was )?(lost|expired)
  lost (the )?lock|lock … (expired|lost)|wait cycle|locking (failed|conflict)|lock conflict
  (obtain|acquire|get|take|grab|secure|lock) … (lock|row|mutex|semaphore|lease)|exclusive access
  (database|table|row|record|object|document|resource|file|entity|account|ledger) … (is|was) (currently |temporarily |already )?locked
  (being|currently) (accessed|modified|updated|used|edited|accessing) … by|currently accessing
  locked by (another|other)|resource busy
version conflict_or_duplicate 0.94 it was changed in between: what is read afresh can be written
  optimistic (lock|concurrency)\w*|stale (object|element|state|version|data|record|revision)\w*|edit conflict
  (modified|updated|changed|deleted|edited) by (another|other|someone|a different)
  has been (modified|updated|changed) since|object has been modified
  (version|revision|etag|sequence|generation|resource version) … (conflict|mismatch|mismatched|does not match|did not match|out of date|outdated)
  concurrent(ly)? (update|updated|modif\w+|change|write|edit|access|operation)s?|conflict occurred while saving
  collision|collided|at the same time|conflicting … (update|operation|change|request|write)s?|update conflict
  document conflict|precondition … (failed|not hold)|pre conditions
under_way conflict_or_duplicate 0.95 the same thing is under way already: later it is over
  already (in progress|running|being|processing|under ?way|in flight|started|pending|executing)
  (still|currently) (in progress|processing|being processed|running|pending)
  another … (in progress|under ?way|running|executing|being processed)|(is|was) (currently )?in progress
  operation in progress|(concurrent|simultaneous|parallel) … (same|this) (key|resource|object|idempotency)
  has not yet (been )?(completed|finished)|not yet completed
not_yet conflict_or_duplicate 0.88 it is not so far yet: later it is
  has not been (processed|settled|completed|captured|approved|confirmed|paid|shipped|batched|indexed|published|finali[sz]ed|received)
  not (\w+ )?yet|not yet \w+|too early|not ready|(is|are|was|still|currently) pending
  once (it|the \w+) (is|has been) (ready|completed|processed|finished|settled)
duplicate_key conflict_or_duplicate.done 0.95 it is there already
  codes: 23505
  duplicate … (key|entry|record|value|row|object|item|id|request|message|event|transaction|order|payment|submission|resource|detected)
  dup key|e11000|unique (key |index )?(constraint|violation)|unique(ness)? violation
  violat\w+ (of )?(\w+ )?(unique|primary) (key )?\w*|integrity constraint violation … duplicate|must be unique
  is not unique|not unique
foreign_key missing_target 0.95 what it refers to is not there, or not yet
  codes: 23503
  foreign key|parent key not found|child row|referential integrity|is not present in table|reference constraint
column_value bad_payload 0.94 a value does not fit the column it goes to
  codes: 22001 22003 22007 22008 22P02 22021 22P05 23502 23514
  (not null|check) constraint|null value in column|(column|field) … cannot be null|value too long|data too long
  (data|string) … truncat\w+|out of range (value|for)|numeric (value|field)? ?(out of range|overflow)
  invalid input (syntax|value)|incorrect … value|cannot insert … null|conversion failed|arithmetic overflow
  invalid byte sequence|right truncation|value out of range|data exception
schema bug_in_receiver.release 0.94 the program and its schema do not fit: a release or a migration is missing
  codes: 42P01 42703 42S02 42S22 42883 3F000 3D000
  (relation|table|column|view|database|procedure|sequence|schema|stored procedure|tablespace|keyspace) … (does ?n[o]?t exist|not found|is unknown|is invalid|missing)
  (unknown|undefined|no such|invalid) (column|table|relation|object name|column name|database|schema|keyspace)
  unconfigured table|pending migrations?|migrations? (\w+ )?(pending|missing|required|not applied)
  invalid identifier|column … does not exist
constraint bad_payload 0.75 the data does not fit what the database demands
  codes: 23000
  (data )?integrity (constraint )?violation|constraint (violation|violated|failed|error)|violates? (a |the )?(\w+ )?constraint
leader outage.passing 0.94 it is starting, stopping or choosing a leader: soon it answers again
  codes: 57P03 57P01 57P02 25006
  ^shut ?down$|sigterm|terminating|draining|drained|graceful\w*|evicted|pre ?empt(ed|ion)
  starting up|start(ing)? in progress|not yet (accepting|ready|started|available|initiali[sz]ed)
  (is|are|currently) (loading|starting|restarting|booting|initiali[sz]ing|warming up|bootstrapping)|shutting down
  shut ?down (in progress|is in progress)|administrator command|recovery mode|in recovery|fail(ing)? ?over
  being (restarted|moved|migrated|upgraded|promoted)|no (\w+ )?(leader|master|primary)
  not (the |a |currently the )?(current )?(leader|master|primary|controller|coordinator)\w*
  (leader|master|coordinator|controller) (is )?(not|un)( ?available| ?known|found)|pass through the leader
  not leader|leader election|stepp(ed|ing) down|not writable primary
  read only (database|server|instance|replica|mode|transaction|slave|standby|node|follower)|cluster ?(is )?down
  not enough replicas|replicas? … (not|un) ?available|insufficient … (replicas|nodes|acks)
  not enough … (replicas|nodes|brokers)|re ?balanc(e|ing|ed)|standby|slot (is )?(migrating|not served)
  partition … (moved|unavailable|offline)
connection_slots resource_exhausted.passing 0.95 all its connections are taken for now
  codes: 53300 08004
  too many (clients|connections|sessions|active connections|open connections|db connections|client connections)
  connection slots|max(imum)? … (connections|clients|sessions)\b.*(reached|exceeded|already)?
  (connection )?pool … (exhausted|time ?out|timed out|full|empty|limit|closed)
  (get|acquire|acquiring|obtain|obtaining|borrow|checkout|waiting for|fetch) … connection
  (connection|session|client) limit|connection is not available|no (available|free|more|idle) (\w+ )?connections?
  queue pool limit
statement_timeout timeout 0.94 the statement took longer than it may
  codes: 57014
  (statement|query|command|operation|request|execution|transaction|script) (\w+ )?(time ?out|timed out|time limit)
  cancell?ing statement|execution time exceeded|max(imum)? … execution time
database_connection network 0.955 the connection to the database broke
  codes: 08000 08001 08003 08006 08S01
  server has gone away|lost connection|server closed the connection|communications? link failure
  (connection|channel|socket|session|client|stream|pool) … (not open|has been closed|is closed|already closed|was killed|is dead|is broken)
  database connection (lost|closed|failed|error)
transaction_aborted bug_in_receiver 0.8 an error before it had already ended the transaction
  codes: 25P02
  current transaction is aborted|commands ignored until
  transaction (has )?(already )?(been )?(rolled back|completed|ended)|no (active )?transaction
batch bad_payload 0.9 it was not wrong itself: another part of its batch was, and nothing was written
  (another|other|one|some|previous) … (operation|record|item|request|command|step)s? … failed|processing halted
  batch … (halted|aborted|rejected)|all or (none|nothing)|bulk … (rejected|aborted)
`);
