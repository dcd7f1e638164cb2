-- One row per partition of the batch. Rows with nothing changed save their watermark and counts only.
with input as (
    select * from unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
        as t (topic, partition, max_time, expires_at, entries, seq, counted, late, quarantined)
), deltas as (
    insert into stream_deltas (operator, topic, partition, seq, expires_at, entries)
    select $1, topic, partition, seq, expires_at, entries::json from input
     where entries <> '' order by topic, partition
)
insert into stream_watermarks as w (operator, topic, partition, max_time, expires_at, received, counted, late, quarantined)
select $1, topic, partition, max_time, expires_at, counted + late + quarantined, counted, late, quarantined
  from input order by topic, partition
on conflict (operator, topic, partition) do update
   set max_time = excluded.max_time, expires_at = excluded.expires_at,
       received = w.received + excluded.received, counted = w.counted + excluded.counted,
       late = w.late + excluded.late, quarantined = w.quarantined + excluded.quarantined
