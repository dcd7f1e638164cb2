-- Sums per action keep the answer for all of time cheap.
with batch as (
    select * from unnest($1::text[], $2::timestamptz[], $3::bigint[]) as t (action, minute, clicks)
), minutes as (
    insert into clicks_per_minute as c (action, minute, clicks)
    select action, minute, clicks from batch order by action, minute
    on conflict (minute, action) do update set clicks = c.clicks + excluded.clicks
)
insert into clicks_per_action as c (action, clicks)
select action, sum(clicks) from batch group by action order by action
on conflict (action) do update set clicks = c.clicks + excluded.clicks
