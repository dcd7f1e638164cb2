select id, authorization_id, kind, amount
from entries
order by recorded_at, id
