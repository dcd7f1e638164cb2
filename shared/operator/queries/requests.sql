select id, topic, partition, action, "offset", key, requested_by
from operator_requests
where operator = $1 and topic = $2 and partition = $3 and finished_at is null
order by id
