insert into stock (sku, on_hand, reserved)
select * from unnest($1::text[], $2::bigint[], $3::bigint[]) as s (sku, on_hand, reserved)
 order by s.sku
on conflict (sku) do update set on_hand = excluded.on_hand, reserved = excluded.reserved
