-- How many jobs there are to do, and since when the oldest waits, in seconds.
select
  count(*) filter (where state = 'available' and scheduled_at <= now()),
  count(*) filter (where state in ('available', 'scheduled', 'retryable') and scheduled_at > now()),
  count(*) filter (where state = 'running'),
  coalesce(extract(epoch from now() - min(created_at)), 0)::float8
from river_job
where state in ('available', 'running', 'retryable', 'scheduled')
