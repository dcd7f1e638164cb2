-- A partition without a row was added to the topic later; it is read from its beginning.
with added as (
  insert into checkpoints (operator, topic, partition, next_offset, source_position, adopt, epoch, topic_id)
  select $1, $2, p, -1, 0, false, 1, $4 from unnest($3::int[]) p
  where not exists (select from checkpoints k where k.operator = $1 and k.topic = $2 and k.partition = p)
  order by p
  on conflict do nothing
  returning partition, next_offset, source_position, adopt, epoch, topic_id
), held as (
  select partition from checkpoints
  where operator = $1 and topic = $2 and partition = any ($3::int[])
  order by partition for update
), raised as (
  update checkpoints k set epoch = k.epoch + 1 from held
  where k.operator = $1 and k.topic = $2 and k.partition = held.partition
  returning k.partition, k.next_offset, k.source_position, k.adopt, k.epoch, k.topic_id
)
select * from added union all select * from raised order by partition
