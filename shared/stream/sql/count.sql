-- Events that did not count may be a partition's first, before it has a watermark.
insert into stream_watermarks as w (operator, topic, partition, max_time, expires_at, received, counted, late, quarantined)
select $1, topic, partition, 0, 0, counted + late + quarantined, counted, late, quarantined
  from unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[]) as n (topic, partition, counted, late, quarantined)
 order by topic, partition
on conflict (operator, topic, partition) do update
   set received = w.received + excluded.received, counted = w.counted + excluded.counted,
       late = w.late + excluded.late, quarantined = w.quarantined + excluded.quarantined
