select key, request, failures, status, body
from requests where key = any($1::text[])
order by key for update
