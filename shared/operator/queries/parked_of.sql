-- What was parked after a person asked for a discard was not in the count that they saw.
select p."offset", p.key, p.value, p.headers, p.timestamped,
       (select min(e."offset") from parked e where e.operator = p.operator and e.topic = p.topic and e.key = p.key
                                               and e.partition = p.partition and e."offset" < p."offset")
from parked p join operator_requests r on r.id = $8
where p.operator = $1 and p.topic = $2 and p.partition = $3 and p."offset" > $4
  and ($5::bigint is null or p."offset" = $5) and ($6::bytea is null or p.key = $6)
  and (r.action <> 'discard' or p.parked_at <= r.requested_at)
order by p."offset"
limit $7
