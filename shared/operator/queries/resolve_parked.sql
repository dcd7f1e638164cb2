with gone as (
  delete from parked where operator = $1 and topic = $2 and partition = $3 and "offset" = any ($4::bigint[])
  returning "offset", key, event_id, type, reason, error
), counted as (
  update operator_requests set done = done + (select count(*) from gone) where id = $5
)
insert into operator_audit (operator, action, topic, partition, "offset", key, who, detail)
select $1, $6, $2, $3, "offset", key, $7, type || ' ' || event_id || ', parked as ' || reason || ': ' || error
from gone order by "offset"
