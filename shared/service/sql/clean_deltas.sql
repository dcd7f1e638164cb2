-- The keyed state of an operator that is gone.
delete from stream_deltas where id = any (array(select id from stream_deltas where operator = $1 limit $2))
