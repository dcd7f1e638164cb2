-- Operators that the service does not have and whose checkpoints have not moved for long. What they parked is for a
-- person to decide on, so they stay as long as there is any.
select c.operator from checkpoints c
where not c.operator = any ($2) and not exists (select from parked p where p.operator = c.operator)
group by c.operator having max(c.updated_at) < clock_timestamp() - make_interval(secs => $1)
