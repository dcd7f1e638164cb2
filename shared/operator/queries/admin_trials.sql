select r.topic, r.partition, t."offset", p.key, coalesce(p.type, ''), t.outcome, t.detail
from operator_trials t join operator_requests r on r.id = t.request
left join parked p on p.operator = r.operator and p.topic = r.topic and p.partition = r.partition and p."offset" = t."offset"
where t.request = any ($1::bigint[])
order by r.topic, r.partition, t."offset"
