-- Rows of which nothing is needed, from the front of the log.
delete from stream_deltas d
 using unnest($2::text[], $3::int[], $4::bigint[]) as w (topic, partition, low)
 where d.operator = $1 and d.topic = w.topic and d.partition = w.partition and d.seq < w.low
