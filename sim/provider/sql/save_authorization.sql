insert into authorizations (id, key, reference, status, decline_code, card_fingerprint, card_brand,
  card_last_four, behaviour, amount, currency, captured, refunded, disputed)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
on conflict (id) do update set status = excluded.status, captured = excluded.captured,
  refunded = excluded.refunded, disputed = excluded.disputed
