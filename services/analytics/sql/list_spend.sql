-- Partial sums of windows that are closed already are still there for a while; what is closed counts.
with horizon as (
    select coalesce((select closed_until from stream_windows where operator = $1), 0) as closed_until
), parts as (
    select substr(e.key, 5) as account, left(e.key, 3) as currency, p.pane, e.value
      from horizon, stream_partials p cross join lateral json_each(p.entries) e
     where p.operator = $1 and p.pane >= horizon.closed_until
       and p.pane >= (extract(epoch from $3::timestamptz) * 1000000)::bigint
       and p.pane < (extract(epoch from $4::timestamptz) * 1000000)::bigint
       and ($2 = '' or substr(e.key, 5) = $2)
), still_open as (
    select account, currency, timestamptz 'epoch' + pane * interval '1 microsecond' as window_start,
           timestamptz 'epoch' + (pane + $9) * interval '1 microsecond' as window_end,
           sum((value ->> 'payments')::bigint)::bigint as payments, sum((value ->> 'captured')::bigint)::bigint as captured,
           sum((value ->> 'refunds')::bigint)::bigint as refunds, sum((value ->> 'refunded')::bigint)::bigint as refunded,
           0 as revision
      from parts group by account, currency, pane
), closed as (
    select account, currency, window_start, window_end, payments, captured, refunds, refunded, revision
      from account_spend
     where window_start >= $3 and window_start < $4 and ($2 = '' or account = $2)
       and (window_start, account, currency) > ($5, $6, $7)
     order by window_start, account, currency limit $8
)
select * from closed
union all
select * from still_open o
 where (window_start, account, currency) > ($5, $6, $7)
   and not exists (select 1 from account_spend s
                    where s.account = o.account and s.window_start = o.window_start and s.currency = o.currency)
 order by window_start, account, currency limit $8
