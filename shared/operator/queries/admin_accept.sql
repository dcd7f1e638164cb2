-- The epoch is raised so that nobody who still holds the partition goes on from the old checkpoint.
with moved as (
  update checkpoints
  set epoch = epoch + 1,
      adopt = true,
      next_offset = case $4::text when 'missing_events' then next_offset else $5::bigint end,
      topic_id = case $4::text when 'topic_replaced' then '' else topic_id end,
      source_position = case when $6::boolean then 0 else source_position end
  where operator = $1 and topic = $2 and ($3::int < 0 or partition = $3)
)
insert into operator_audit (operator, action, topic, partition, who, detail)
values ($1, 'accept-gap', $2, $3, $7, $8)
