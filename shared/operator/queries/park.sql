insert into parked (operator, topic, partition, "offset", key, value, headers, timestamped,
                    event_id, type, reason, error, attempts)
select $1, r.topic, r.partition, r."offset", r.key, r.value, r.headers::json,
       'epoch'::timestamptz + r.micros * interval '1 microsecond', r.id, r.type, r.reason, r.error, r.attempts
from unnest($2::text[], $3::int[], $4::bigint[], $5::bytea[], $6::bytea[], $7::text[], $8::bigint[], $9::text[],
            $10::text[], $11::text[], $12::text[], $13::int[])
     r(topic, partition, "offset", key, value, headers, micros, id, type, reason, error, attempts)
order by r.topic, r.partition, r."offset"
