select operator, topic, partition, "offset", key, case when $7 then value end, headers, timestamped, event_id, type,
       reason, error, attempts, parked_at
from parked
where operator = $1 and ($2 = '' or topic = $2) and ($3::int is null or partition = $3) and ($4::bigint is null or "offset" = $4)
  and ($5::bytea is null or key = $5)
order by operator, topic, partition, "offset"
limit $6
