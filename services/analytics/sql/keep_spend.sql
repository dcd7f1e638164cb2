insert into account_spend as s (account, currency, window_start, window_end, payments, captured, refunds, refunded, revision)
select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::int[])
on conflict (account, window_start, currency) do update
   set window_end = excluded.window_end, payments = excluded.payments, captured = excluded.captured,
       refunds = excluded.refunds, refunded = excluded.refunded, revision = excluded.revision
 where s.revision < excluded.revision
