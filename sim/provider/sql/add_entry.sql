insert into entries (id, authorization_id, kind, amount, key) values ($1, $2, $3, $4, $5)
