with kept as (
  update parked set reason = $5, error = $6, attempts = attempts + 1
  where operator = $1 and topic = $2 and partition = $3 and "offset" = $4
  returning key, type, event_id
), counted as (
  update operator_requests set failed = failed + (select count(*) from kept) where id = $7
)
insert into operator_audit (operator, action, topic, partition, "offset", key, who, detail)
select $1, 'replay failed', $2, $3, $4, key, $8, type || ' ' || event_id || ': ' || $6 from kept
