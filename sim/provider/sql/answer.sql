select status, body from requests where key = $1 and status is not null
