insert into checkpoints (operator, topic, partition, next_offset, source_position, adopt, epoch, topic_id)
select $1, $2, p.partition, p.next_offset, 0, $4, 0, $3
from unnest($5::int[], $6::bigint[]) p(partition, next_offset)
order by p.partition
on conflict do nothing
