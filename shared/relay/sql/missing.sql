-- The first event of the log that the store does not have at its position. What is archived was there.
select l.n::int from unnest($1::bigint[], $2::text[]) with ordinality l(position, id, n)
left join events e on e.position = l.position
where e.meta->>'id' is distinct from l.id and l.position > (select es_archived())
order by l.n limit 1
