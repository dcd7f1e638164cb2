-- A trial leaves no trace, so it is not noted.
with places as (
  select distinct operator, topic, partition from parked
  where operator = $1 and ($2 = '' or topic = $2) and ($3::int is null or partition = $3) and ($4::bigint is null or "offset" = $4)
    and ($5::bytea is null or key = $5)
), asked as (
  insert into operator_requests (operator, topic, partition, action, "offset", key, requested_by)
  select operator, topic, partition, $6, $4, $5, $7 from places order by topic, partition
  returning id, operator, topic, partition, action, "offset", key, requested_by
), noted as (
  insert into operator_audit (operator, action, topic, partition, "offset", key, who, detail)
  select operator, action || ' requested', topic, partition, "offset", key, requested_by, 'request ' || id from asked
  where action <> 'try'
)
select id from asked order by id
