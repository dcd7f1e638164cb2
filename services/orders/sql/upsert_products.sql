insert into products (sku, name, price_amount, price_currency, active)
select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::boolean[]) as p (sku, name, price_amount, price_currency, active)
order by p.sku
on conflict (sku) do update
   set name = excluded.name,
       price_amount = excluded.price_amount,
       price_currency = excluded.price_currency,
       active = excluded.active
