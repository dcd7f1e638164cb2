-- +goose Up
-- How far each operator has come. The database, not Kafka, knows what was processed.
create table checkpoints (
  operator        text    not null,
  topic           text    not null,
  partition       integer not null,
  next_offset     bigint  not null, -- of the next record to take; -1: the earliest that is there at the next claim
  source_position bigint  not null, -- position, in its owner's store, of the last event applied
  adopt           boolean not null, -- take over the next record's ce_previous instead of checking it
  epoch           bigint  not null, -- raised by each owner; the commits of the one before are refused
  topic_id        text    not null, -- a recreated topic has another one; '': that of the next claim
  updated_at      timestamptz not null default clock_timestamp(),
  primary key (operator, topic, partition)
) with (fillfactor = 50);

-- Records that an operator could not apply, and those of their keys that wait behind them.
create table parked (
  operator      text    not null,
  topic         text    not null,
  partition     integer not null,
  "offset"      bigint  not null, -- an event that was filled in has none; it gets a negative number
  key           bytea,            -- null: the record has none and blocks nobody
  value         bytea,            -- null: a tombstone
  headers       json    not null, -- [[name, value], ...], both in base64: they need not be text
  timestamped   timestamptz not null,
  event_id      text    not null,
  type          text    not null,
  reason        text    not null,
  error         text    not null,
  attempts      integer not null, -- times it was tried and failed
  parked_at     timestamptz not null default clock_timestamp(),
  primary key (operator, topic, partition, "offset")
);
create index parked_key on parked (operator, topic, key, "offset");

-- What a person asked the owner of a partition to do with its parked records, or to fill in.
create table operator_requests (
  id           bigint  generated always as identity primary key,
  operator     text    not null,
  topic        text    not null,
  partition    integer not null,
  action       text    not null check (action in ('replay', 'discard', 'fill')),
  "offset"     bigint,             -- one record,
  key          bytea,              -- or all of a key; both null: all of the partition
  requested_by text    not null,
  requested_at timestamptz not null default clock_timestamp(),
  finished_at  timestamptz,
  done         integer not null default 0, -- records replayed or discarded
  failed       integer not null default 0  -- records that failed again and stay parked
);
create index operator_requests_open on operator_requests (operator, id) where finished_at is null;

-- Events that are missing on a topic, copied from their owner's store; gone when they are applied.
create table operator_fills (
  operator    text    not null,
  topic       text    not null,
  partition   integer not null,
  sequence    bigint  not null,
  key         bytea,
  value       bytea   not null,
  headers     json    not null, -- as in parked
  timestamped timestamptz not null,
  primary key (operator, topic, partition, sequence)
);

create table operator_control (
  operator   text primary key,
  paused     boolean not null,
  changed_by text not null,
  changed_at timestamptz not null default clock_timestamp()
);

-- Operators that stopped by name, and why.
create table operator_stops (
  operator   text    not null,
  topic      text    not null,
  partition  integer not null, -- -1: the whole topic
  kind       text    not null check (kind in ('history_lost', 'topic_replaced', 'missing_events')),
  message    text    not null,
  resume_at  bigint  not null, -- offset from which it would go on once the gap is accepted; -1: the earliest
  have       bigint  not null, -- missing_events: position of the last event applied,
  need       bigint  not null, -- and of the one that the next record follows
  member     text    not null,
  stopped_at timestamptz not null default clock_timestamp(),
  primary key (operator, topic, partition)
);

-- Who did what by hand, and what came of it.
create table operator_audit (
  id        bigint generated always as identity primary key,
  at        timestamptz not null default clock_timestamp(),
  operator  text    not null,
  action    text    not null,
  topic     text,
  partition integer,
  "offset"  bigint,
  key       bytea,
  who       text    not null,
  detail    text    not null default ''
);
create index operator_audit_operator on operator_audit (operator, id);

-- +goose Down
drop table operator_audit, operator_stops, operator_control, operator_fills, operator_requests, parked, checkpoints;
