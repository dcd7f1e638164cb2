insert into stream_windows as w (operator, closed_until, closed_key) values ($1, $2, '')
on conflict (operator) do update set closed_until = w.closed_until
returning closed_until
