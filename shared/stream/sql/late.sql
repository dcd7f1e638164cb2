insert into stream_late (operator, topic, partition, "offset", reason, key, id, event_time, watermark, recorded_at)
select $1, topic, partition, "offset", reason, key, id, event_time, watermark, nullif(recorded_at, 0)
  from unnest($2::text[], $3::int[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[])
    as t (topic, partition, "offset", reason, key, id, event_time, watermark, recorded_at)
 order by topic, partition, "offset"
