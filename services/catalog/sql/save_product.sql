insert into products (sku, version, name, description, price_amount, price_currency, active, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (sku) do update
   set version = excluded.version,
       name = excluded.name,
       description = excluded.description,
       price_amount = excluded.price_amount,
       price_currency = excluded.price_currency,
       active = excluded.active,
       updated_at = excluded.updated_at
