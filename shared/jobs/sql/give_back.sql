-- Makes a job available again, if the attempt is still the running one: $1 job, $2 attempted_at, $3 seconds to
-- wait, $4 whether the attempt counts, $5 its error. A job that waits is "available" with a time to come, so
-- that no leader is needed to wake it. The number of attempts stays below the limit, since jobs never expire,
-- and the last ten errors are kept.
update river_job set
  state        = 'available',
  scheduled_at = now() + make_interval(secs => $3::float8),
  attempt      = case when $4::boolean then least(attempt, max_attempts - 1) else greatest(attempt - 1, 0) end,
  errors       = case when $5::jsonb is null then errors
                 else (array_append(errors, $5::jsonb))[greatest(coalesce(cardinality(errors), 0) - 8, 1):] end
where id = $1 and state = 'running' and attempted_at = $2
