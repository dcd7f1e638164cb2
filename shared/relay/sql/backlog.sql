-- How much is not published yet. Positions of rolled-back appends count too, so the number is an upper bound.
select coalesce((select max(position) from events), 0) - $1,
       coalesce((select extract(epoch from clock_timestamp() - recorded_at)::float8
                 from events where position > $1 order by position limit 1), 0)
