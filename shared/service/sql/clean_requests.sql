-- Requests that were finished long ago.
delete from operator_requests where id = any (array(
  select id from operator_requests where finished_at < clock_timestamp() - make_interval(secs => $1) order by id limit $2))
