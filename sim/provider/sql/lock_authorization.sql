-- By id or by key; the other one is ''.
select id, key, reference, status, decline_code, card_fingerprint, card_brand, card_last_four, behaviour,
       amount, currency, captured, refunded, disputed
from authorizations
where id = $1 or key = $2
for update
