select k.operator, k.topic, k.partition, k.next_offset, k.source_position, k.epoch, k.updated_at,
       (select count(*) from parked p
        where p.operator = k.operator and p.topic = k.topic and p.partition = k.partition)
from checkpoints k
order by k.operator, k.topic, k.partition
