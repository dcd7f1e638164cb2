with written as (
    insert into stream_partials (operator, topic, partition, pane, entries)
    select $1, topic, partition, pane, entries::json
      from unnest($2::text[], $3::int[], $4::bigint[], $5::text[]) as t (topic, partition, pane, entries)
     order by topic, partition, pane
)
insert into stream_watermarks (operator, topic, partition, max_time, expires_at, watermark)
select $1, topic, partition, max_time, 0, watermark
  from unnest($6::text[], $7::int[], $8::bigint[], $9::bigint[]) as t (topic, partition, max_time, watermark)
 order by topic, partition
on conflict (operator, topic, partition) do update
   set max_time = excluded.max_time, watermark = excluded.watermark
