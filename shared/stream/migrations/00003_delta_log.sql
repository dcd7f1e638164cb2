-- +goose Up
-- The log of deltas is cleaned from its front: what is still needed of its oldest rows is carried forward, and the rows
-- go. So a row needs a number that its operator knows when it writes it.
alter table stream_deltas add column seq bigint not null default 0; -- 1, 2, 3… within a partition
update stream_deltas d set seq = n.seq
  from (select id, row_number() over (partition by operator, topic, partition order by id) as seq from stream_deltas) n
 where n.id = d.id;
drop index stream_deltas_expiry;
create index stream_deltas_log on stream_deltas (operator, topic, partition, seq);

-- +goose Down
drop index stream_deltas_log;
alter table stream_deltas drop column seq;
create index stream_deltas_expiry on stream_deltas (operator, topic, partition, expires_at);
