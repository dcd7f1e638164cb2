-- The service's own tables, without the lists of applied migrations.
select relname::text, n_live_tup::float8, n_dead_tup::float8
from pg_stat_user_tables
where schemaname = any (current_schemas(false)) and relname !~ '^(goose_|river_migration)'
order by relname
limit $1
