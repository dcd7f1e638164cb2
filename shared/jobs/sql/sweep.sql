-- Gives back the running jobs of processes that are gone: those whose client id nobody holds the lock of. $1 is
-- the own client id, whose lock this session holds and would therefore get again.
with gone as materialized (
  select client
  from (select distinct attempted_by[cardinality(attempted_by)] as client from river_job where state = 'running') owners
  where client <> $1 and pg_try_advisory_xact_lock(hashtextextended(client, 7162))
),
orphans as (
  select id from river_job
  where state = 'running' and attempted_by[cardinality(attempted_by)] in (select client from gone)
  order by id for update skip locked
)
update river_job j set
  state        = 'available',
  scheduled_at = now(),
  attempt      = least(j.attempt, j.max_attempts - 1)
from orphans where j.id = orphans.id
