select id, key, reference, status, decline_code, card_fingerprint, card_brand, card_last_four, behaviour,
       amount, currency, captured, refunded, disputed
from authorizations
order by created_at, id
