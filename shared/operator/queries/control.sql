select coalesce((select paused from operator_control where operator = $1), false),
       exists (select from operator_stops where operator = $1),
       exists (select from operator_requests where operator = $1 and finished_at is null)
