-- Old rows of the audit. What says which records were never applied stays: a rebuild leaves them out too.
delete from operator_audit where id = any (array(
  select id from operator_audit where at < clock_timestamp() - make_interval(secs => $1)
    and action not in ('discarded', 'accept-gap') order by id limit $2))
