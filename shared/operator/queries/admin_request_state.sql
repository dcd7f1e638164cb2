select id, operator, topic, partition, action, requested_by, finished_at, done, failed
from operator_requests where id = any ($1::bigint[]) order by id
