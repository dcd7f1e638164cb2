-- A leader that was frozen while the server sends it events never gets idle, so no timeout of the server ends it
-- while it waits for the client to read. $1 is the lock, $2 after how many seconds that is a freeze.
select count(pg_terminate_backend(a.pid))
from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.objsubid = 1
  and l.database = (select oid from pg_database where datname = current_database())
  and l.classid = ($1::bigint >> 32)::oid and l.objid = ($1::bigint & 4294967295)::oid
  and a.usename = current_user
  and a.wait_event = 'ClientWrite' and a.query_start < clock_timestamp() - make_interval(secs => $2)
