select k.topic, k.partition, k.next_offset, k.source_position, k.epoch, false
from unnest($2::text[], $3::int[]) w(topic, partition)
join checkpoints k on k.operator = $1 and k.topic = w.topic and k.partition = w.partition
where $4::bigint[] is not null and $5::bigint[] is not null and $6::bigint[] is not null -- shared with bar.sql
