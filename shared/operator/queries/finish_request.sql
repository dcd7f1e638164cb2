with finished as (
  update operator_requests set finished_at = clock_timestamp() where id = $1 and finished_at is null
  returning operator, topic, partition, action, "offset", key, requested_by, done, failed
), filled as (
  delete from operator_fills f using finished r
  where r.action = 'fill' and f.operator = r.operator and f.topic = r.topic and f.partition = r.partition
)
insert into operator_audit (operator, action, topic, partition, "offset", key, who, detail)
select operator, action || ' finished', topic, partition, "offset", key, requested_by,
       done || ' records, ' || failed || ' failed again' from finished
