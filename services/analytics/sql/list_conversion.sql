with clicked as (
    select minute, sum(clicks)::bigint as clicks from clicks_per_minute
     where minute >= $2 and minute < $3 and minute > $4 and ($1 = '' or action = $1)
     group by minute order by minute limit $5
), placed as (
    select minute, orders from orders_per_minute
     where minute >= $2 and minute < $3 and minute > $4 order by minute limit $5
)
select minute, coalesce(clicks, 0), coalesce(orders, 0)
  from clicked full join placed using (minute)
 order by minute limit $5
