-- The service's own tables, without the lists of applied migrations. The parts of a table count as that table.
select t.name::text, sum(s.n_live_tup)::float8, sum(s.n_dead_tup)::float8
from pg_stat_user_tables s
cross join lateral (select relname from pg_class where oid = coalesce(pg_partition_root(s.relid), s.relid)) t(name)
where s.schemaname = any (current_schemas(false)) and t.name !~ '^(goose_|river_migration)'
group by t.name
order by t.name
limit $1
