/** Transactions that are open on the server, as a relation: `what` it is in words, since when, and the number of what it writes, if it does. */
export const OPEN_TRANSACTIONS = `(
    select format('a transaction of %s (pid %s, %s)', coalesce(nullif(application_name, ''), usename), pid, state) as what, xact_start as since, backend_xid as xid
      from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
    union all select format('the prepared transaction %L', gid), prepared, transaction from pg_prepared_xacts)`;
