-- The holder of the lock becomes the leader: what an earlier one still writes is refused.
insert into relay_cursor as c (topic, term) values ($1, 1)
on conflict (topic) do update set term = c.term + 1, stopped = ''
returning term, position, partitions, database, relay_database()
