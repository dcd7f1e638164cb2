update requests set request = $2, status = $3, body = $4, answered_at = clock_timestamp() where key = $1
