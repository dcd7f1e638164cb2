delete from stream_deltas d
 using unnest($2::text[], $3::int[], $4::bigint[]) as w (topic, partition, watermark)
 where d.operator = $1 and d.topic = w.topic and d.partition = w.partition and d.expires_at < w.watermark
