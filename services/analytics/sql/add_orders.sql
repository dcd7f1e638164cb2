insert into orders_per_minute as o (minute, orders)
select * from unnest($1::timestamptz[], $2::bigint[])
on conflict (minute) do update set orders = o.orders + excluded.orders
