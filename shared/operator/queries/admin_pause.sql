with known as (
  select from checkpoints where operator = $1 limit 1
), changed as (
  insert into operator_control (operator, paused, changed_by) select $1, $2, $3 from known
  on conflict (operator) do update
  set paused = excluded.paused, changed_by = excluded.changed_by, changed_at = clock_timestamp()
), retried as (
  delete from operator_stops where operator = $1 and not $2
), noted as (
  insert into operator_audit (operator, action, who) select $1, $4, $3 from known
)
select exists (select from known)
