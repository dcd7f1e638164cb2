-- Where the relay of this store is.

-- +goose Up
create table relay_cursor (
  topic      text primary key,
  position   bigint not null default 0, -- every event up to here is published, or not for this topic
  term       bigint not null default 0, -- raised by each new leader; the writes of earlier ones are refused
  partitions int not null default 0,    -- the topic's, as first seen; 0: not seen yet
  database   text not null default ''   -- which database this was, see relay_database; '': not compared yet
) with (fillfactor = 50);               -- updated at each round: room for updates within the page (HOT)

-- As of the cursor: a partition that is missing has had no event.
create table relay_partitions (
  topic         text not null,
  partition     int not null,
  last_position bigint not null, -- of the last event published to it: the next one's ce_previous
  next_offset   bigint not null, -- every record before it is of an event up to the cursor
  primary key (topic, partition)
) with (fillfactor = 50);

-- relay_database changes whenever the store may have lost events that were published: another cluster
-- (pg_upgrade, logical restore), another timeline (failover, point-in-time recovery), another database of the
-- same cluster, or tables that were created again. Any role may call the two control functions, unless a cluster
-- revoked it: then "grant execute on function pg_control_system, pg_control_checkpoint to <role>".
create function relay_database() returns text language sql as $$
  select format('system %s, timeline %s, database %s, table %s',
    (select system_identifier from pg_control_system()),
    (select timeline_id from pg_control_checkpoint()),
    (select oid from pg_database where datname = current_database()),
    'events'::regclass::oid)
$$;

-- relay_now is a time up to which every event is visible to a statement that begins after it returns: while the
-- store lock is held (es_lock_key, as es_events does), nobody has stamped an event without having committed it.
-- +goose StatementBegin
create function relay_now() returns timestamptz language plpgsql as $$
begin
  perform pg_advisory_xact_lock(es_lock_key());
  return clock_timestamp();
end $$;
-- +goose StatementEnd

-- +goose Down
drop function relay_now(), relay_database();
drop table relay_partitions, relay_cursor;
