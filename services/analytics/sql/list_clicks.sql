select minute, action, clicks
  from clicks_per_minute
 where minute >= $2 and minute < $3 and ($1 = '' or action = $1) and (minute, action) > ($4, $5)
 order by minute, action limit $6
