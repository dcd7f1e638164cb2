-- All else that an operator that is gone has left, unless it moved or parked something meanwhile.
with gone as (
  delete from checkpoints c where c.operator = $1 and not exists (select from parked p where p.operator = $1)
    and not exists (select from checkpoints m where m.operator = $1 and m.updated_at >= clock_timestamp() - make_interval(secs => $2))
  returning operator
), watermarks as (delete from stream_watermarks where operator in (select operator from gone)),
controls as (delete from operator_control where operator in (select operator from gone)),
stops as (delete from operator_stops where operator in (select operator from gone)),
requests as (delete from operator_requests where operator in (select operator from gone)),
fills as (delete from operator_fills where operator in (select operator from gone))
select count(*) from gone
