-- Events after the cursor, at most $2 of them, and none that begins after $3 bytes.
select position, stream, type, key, data, meta, recorded_at
from (
  select position, stream, type, key, data, meta, recorded_at,
         sum(pg_column_size(data)) over (order by position rows unbounded preceding) - pg_column_size(data) as before
  from events where position > $1 order by position limit $2
) e
where before < $3
order by position
