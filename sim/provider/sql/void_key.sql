-- The answer to an authorisation that comes after its void. One that was answered keeps its answer.
update requests set status = $2, body = $3, answered_at = clock_timestamp() where key = $1 and status is null
