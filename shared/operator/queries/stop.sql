insert into operator_stops (operator, member, topic, partition, kind, message, resume_at)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (operator, topic, partition) do update
set member = excluded.member, kind = excluded.kind, message = excluded.message, resume_at = excluded.resume_at,
    stopped_at = clock_timestamp()
