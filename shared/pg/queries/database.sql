-- What the server keeps count of for this database. The login sees its own sessions only, unless it is a member of
-- pg_read_all_stats; the WAL is that of the whole server.
select
  pg_database_size(current_database())::float8,
  d.numbackends::float8,
  d.xact_commit::float8,
  d.xact_rollback::float8,
  d.deadlocks::float8,
  d.blks_hit::float8,
  d.blks_read::float8,
  d.temp_bytes::float8,
  (select coalesce(extract(epoch from clock_timestamp() - min(a.xact_start)), 0)::float8
   from pg_stat_activity a
   where a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()),
  case when pg_is_in_recovery() then 0 else pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') end::float8,
  extract(epoch from clock_timestamp())::float8
from pg_stat_database d
where d.datname = current_database()
