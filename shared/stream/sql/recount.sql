insert into stream_watermarks (operator, topic, partition, max_time, expires_at, received, counted, late, quarantined)
values ($1, $2, $3, 0, 0, $4::bigint + $5::bigint + $6::bigint, $4, $5, $6)
on conflict (operator, topic, partition) do update
   set received = excluded.received, counted = excluded.counted, late = excluded.late, quarantined = excluded.quarantined
