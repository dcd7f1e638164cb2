-- One row per partition of the batch. Rows with nothing changed save their watermark only.
with input as (
    select * from unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::text[])
        as t (topic, partition, max_time, expires_at, entries)
), deltas as (
    insert into stream_deltas (operator, topic, partition, expires_at, entries)
    select $1, topic, partition, expires_at, entries::json from input
     where entries <> '' order by topic, partition
)
insert into stream_watermarks (operator, topic, partition, max_time, expires_at)
select $1, topic, partition, max_time, expires_at from input order by topic, partition
on conflict (operator, topic, partition) do update
   set max_time = excluded.max_time, expires_at = excluded.expires_at
