select sequence, key, value, headers, timestamped from operator_fills
where operator = $1 and topic = $2 and partition = $3 and sequence > $4
order by sequence
limit $5
