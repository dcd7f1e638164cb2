insert into operator_stops (operator, member, topic, partition, kind, message, resume_at, have, need)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (operator, topic, partition) do update
set member = excluded.member, kind = excluded.kind, message = excluded.message, resume_at = excluded.resume_at,
    have = excluded.have, need = excluded.need, stopped_at = clock_timestamp()
