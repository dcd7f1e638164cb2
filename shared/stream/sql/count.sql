-- The rows are there: the batch's watermarks were written before.
update stream_watermarks w
   set received = w.received + n.counted + n.late + n.quarantined, counted = w.counted + n.counted,
       late = w.late + n.late, quarantined = w.quarantined + n.quarantined
  from unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[]) as n (topic, partition, counted, late, quarantined)
 where w.operator = $1 and w.topic = n.topic and w.partition = n.partition
