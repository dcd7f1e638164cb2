with held as (
  select k.topic, k.partition, k.next_offset, k.source_position, k.epoch,
         w.epoch = k.epoch and w.start = k.next_offset and w.source = k.source_position as ours
  from unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[]) w(topic, partition, epoch, start, source)
  join checkpoints k on k.operator = $1 and k.topic = w.topic and k.partition = w.partition
  order by k.topic, k.partition for update of k
), barred as (
  update checkpoints k set epoch = k.epoch + 1 from held
  where held.ours and k.operator = $1 and k.topic = held.topic and k.partition = held.partition
)
select topic, partition, next_offset, source_position, epoch + ours::int, ours from held
