select window_start, window_end, products, revision
  from top_products
 where window_start >= $1 and window_start < $2 and window_start < $3
 order by window_start desc limit $4
