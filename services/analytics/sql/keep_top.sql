insert into top_products as t (window_start, window_end, products, revision)
select window_start, window_end, products::json, revision
  from unnest($1::timestamptz[], $2::timestamptz[], $3::text[], $4::int[]) as n (window_start, window_end, products, revision)
on conflict (window_start) do update
   set window_end = excluded.window_end, products = excluded.products, revision = excluded.revision
 where t.revision < excluded.revision
