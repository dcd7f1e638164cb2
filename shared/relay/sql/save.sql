-- Moves the cursor, unless another leader was there.
with moved as (
  update relay_cursor set position = $4 where topic = $1 and term = $2 and position = $3
  returning topic
), kept as (
  insert into relay_partitions as k (topic, partition, last_position, next_offset)
  select m.topic, p.partition, p.last, p.next
  from moved m, unnest($5::int[], $6::bigint[], $7::bigint[]) p(partition, last, next)
  on conflict (topic, partition) do update set last_position = excluded.last_position, next_offset = excluded.next_offset
)
select count(*) from moved
