-- How far the windows are closed, how many partitions there are, and the lowest of all watermarks: null while a topic has
-- no checkpoints yet, or a partition no watermark.
select coalesce(w.closed_until, $3), coalesce(w.closed_key, ''), l.partitions,
       case when l.topics = cardinality($2::text[]) and l.unknown = 0 then l.lowest end
  from (select count(distinct k.topic) as topics, count(*) as partitions, count(*) filter (where m.watermark is null) as unknown, min(m.watermark) as lowest
          from checkpoints k left join stream_watermarks m
            on m.operator = k.operator and m.topic = k.topic and m.partition = k.partition
         where k.operator = $1 and k.topic = any ($2)) l
  left join stream_windows w on w.operator = $1
