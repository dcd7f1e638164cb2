with forgotten as (
    delete from stream_partials where operator = $1 and pane <= $4
), noted as (
    insert into stream_closings (operator, window_end, keys)
    select $1, window_end, keys::json from unnest($5::bigint[], $6::text[]) as t (window_end, keys) order by window_end
)
insert into stream_windows (operator, closed_until, closed_key) values ($1, $2, $3)
on conflict (operator) do update set closed_until = excluded.closed_until, closed_key = excluded.closed_key
