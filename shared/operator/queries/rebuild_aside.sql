-- What an operator passed without applying it. An event that was filled in has another place than the record on the
-- topic, so its id counts too; but not the id in a record that its owner did not write, which may be anybody's.
select topic, partition, "offset", case when reason in ('foreign_source', 'not_cloudevent') then '' else event_id end
from parked where operator = $1
union all
select topic, partition, "offset",
       case when detail ~ ', parked as (foreign_source|not_cloudevent):' then '' else rtrim(split_part(detail, ' ', 2), ',') end
from operator_audit where operator = $1 and action = 'discarded'
