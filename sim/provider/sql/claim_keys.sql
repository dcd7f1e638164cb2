-- Sorted, so that two requests that claim the same keys never wait for each other. Whoever comes second waits
-- here until the first has committed.
insert into requests (key)
select key from unnest($1::text[]) key order by key
on conflict do nothing
