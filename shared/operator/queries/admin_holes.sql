-- Why an operator stopped on a topic, with the checkpoints concerned. A topic that was replaced has no partition.
select s.operator, s.topic, s.partition, s.kind, true, s.message, coalesce(k.next_offset, -1), s.resume_at,
       case s.kind when 'missing_events' then s.have else coalesce(k.source_position, 0) end, s.need,
       s.kind = 'history_lost'
from operator_stops s left join checkpoints k using (operator, topic, partition)
where s.operator = $1 and s.topic = $2 and ($3::int < 0 or s.partition = $3)
order by s.partition
