-- The table of events is made of parts, ranges of positions, so that old ones can be archived and dropped whole. A plain
-- table becomes the first part as it is: no row is rewritten, and what is read of it is read beside running writers.
-- Every statement can be repeated, should the one after it fail.

-- +goose NO TRANSACTION
-- +goose Up

-- The bound of the first part leaves room for what is written until the table is turned over.
-- +goose StatementBegin
do $$
declare
  size constant bigint := 1000000; -- eventstore.PartSize
  drawn bigint;
begin
  if (select relkind from pg_class where oid = 'events'::regclass) = 'r' then
    execute format('select case when is_called then last_value else 0 end from %s', pg_get_serial_sequence('events', 'position'))
      into drawn;
    alter table events drop constraint if exists events_first_part;
    execute format('alter table events add constraint events_first_part check (position >= 1 and position < %s) not valid',
      case drawn when 0 then size else (drawn / size + 2) * size end + 1);
  end if;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
do $$
begin
  if (select relkind from pg_class where oid = 'events'::regclass) = 'r' then
    alter table events validate constraint events_first_part; -- proves to "attach" that there is nothing to read
  end if;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
do $$
declare
  bound bigint;
  drawn bigint;
begin
  if (select relkind from pg_class where oid = 'events'::regclass) = 'p' then
    return;
  end if;
  lock table events in access exclusive mode;
  select substring(pg_get_constraintdef(oid) from '< ''?(\d+)')::bigint into strict bound
  from pg_constraint where conrelid = 'events'::regclass and conname = 'events_first_part';
  execute format('select case when is_called then last_value else 0 end from %s', pg_get_serial_sequence('events', 'position'))
    into drawn;

  alter table events alter position drop identity; -- attached parts may not have one before Postgres 17
  alter table events rename to events_1;
  alter table events_1 rename constraint events_pkey to events_pkey_1;
  alter table events_1 rename constraint events_stream_version_key to events_stream_version_1;

  create sequence events_position_seq as bigint cache 1; -- never more: position order is commit order
  perform setval('events_position_seq', greatest(drawn, 1), drawn > 0);
  create table events (
    position    bigint not null default nextval('events_position_seq') constraint events_pkey primary key,
    stream      text not null,
    version     bigint not null,
    type        text not null,
    key         text not null,
    data        json not null,
    meta        json not null,
    recorded_at timestamptz not null default clock_timestamp()
  ) partition by range (position);
  alter sequence events_position_seq owned by events.position;
  execute format('alter table events attach partition events_1 for values from (1) to (%s)', bound);
  alter table events_1 drop constraint events_first_part;
end $$;
-- +goose StatementEnd

-- Parts that are archived, always the oldest ones: up to the end of the last of them no position can be read.
create table if not exists archived_parts (
  low         bigint primary key, -- the first position that the part may have,
  high        bigint not null,    -- and the one after its last
  last        bigint not null,    -- position of its last event; low - 1: it had none
  events      bigint not null,
  first_at    timestamptz,        -- when its first event was recorded,
  last_at     timestamptz,        -- and its last
  file        text not null,      -- as it was named
  bytes       bigint not null,    -- of the file
  sha256      text not null,      -- of the file, in hex
  archived_at timestamptz not null default clock_timestamp(),
  archived_by text not null
);

-- How far the histories of streams are archived.
create table if not exists archived_streams (
  stream      text primary key,
  version     bigint not null, -- of its last event in an archived part
  recorded_at timestamptz      -- of that event, as long as it is archived too
);

-- es_parts lists the parts that are attached: positions from low up to, and without, high. One that is detaching is
-- not read any more.
-- +goose StatementBegin
create or replace function es_parts() returns table (part text, low bigint, high bigint, detaching boolean)
language sql stable as $$
  select c.relname::text, b.b[1]::bigint, b.b[2]::bigint, i.inhdetachpending
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
  cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''?(\d+)''?\) TO \(''?(\d+)''?\)') b(b)
  where i.inhparent = 'events'::regclass order by 2
$$;
-- +goose StatementEnd

-- es_new_part makes an empty table for the positions from low up to, and without, high. It is not a part yet.
-- +goose StatementBegin
create or replace function es_new_part(low bigint, high bigint) returns text language plpgsql as $$
declare
  part text := 'events_' || low;
begin
  execute format('create table %I (like events including storage, constraint events_bound check (position >= %s and position < %s), '
    'constraint %I primary key (position), constraint %I unique (stream, version))',
    part, low, high, 'events_pkey_' || low, 'events_stream_version_' || low);
  return part;
end $$;
-- +goose StatementEnd

-- es_attach_part makes such a table a part. Writers go on meanwhile, and its constraint spares reading it.
-- +goose StatementBegin
create or replace function es_attach_part(low bigint, high bigint) returns void language plpgsql as $$
begin
  execute format('alter table events attach partition %I for values from (%s) to (%s)', 'events_' || low, low, high);
  execute format('alter table %I drop constraint events_bound', 'events_' || low);
end $$;
-- +goose StatementEnd

-- es_make_parts sees to it that the parts reach at least size positions beyond the given one; null stands for the last
-- position drawn. It says how many parts it made.
-- +goose StatementBegin
create or replace function es_make_parts(size bigint, reach bigint default null) returns int language plpgsql as $$
declare
  top  bigint;
  goal bigint;
  made int := 0;
begin
  if reach is null then
    select case when is_called then last_value else 0 end into reach from events_position_seq;
  end if;
  loop
    select greatest(1, (select max(p.high) from es_parts() p), (select max(a.high) from archived_parts a)) into top;
    exit when top > reach + size;
    if made = 0 then -- one process at a time; look again under the lock
      made := -1;
      perform pg_advisory_xact_lock(es_lock_key() + 1);
    else
      made := greatest(made, 0) + 1;
      goal := greatest(top, reach + 1) + size;
      perform es_new_part(top, goal);
      perform es_attach_part(top, goal);
    end if;
  end loop;
  return greatest(made, 0);
end $$;
-- +goose StatementEnd

-- es_archived is the last position of what is archived; 0: nothing is.
create or replace function es_archived() returns bigint language sql stable as 'select coalesce(max(last), 0) from archived_parts';

-- es_changed_at is when a version of a stream was recorded, also when its history is archived up to just that version.
-- +goose StatementBegin
create or replace function es_changed_at(stream text, version bigint) returns timestamptz language sql stable as $$
  select coalesce((select e.recorded_at from events e where e.stream = $1 and e.version = $2),
    (select a.recorded_at from archived_streams a where a.stream = $1 and a.version = $2))
$$;
-- +goose StatementEnd

-- es_check refuses (unique_violation) what a unique index over all parts would refuse. It proves that no two events of
-- a stream have the same version: es_streams locks the stream's row until the commit, found it at the expected version
-- and moved it to the new one; the versions between, each once, are those of the request's events. So the versions that
-- two transactions write never overlap, and in one transaction a stream has one request.
-- +goose StatementBegin
create or replace function es_check(a es_appends, status smallint[]) returns void language plpgsql as $$
declare
  wrong text;
begin
  select r.stream into wrong
  from unnest(a.r_stream, a.r_expected, a.r_new, status) with ordinality r(stream, expected, new, status, req)
  left join unnest(a.e_req, a.e_stream, a.e_version) with ordinality e(req, stream, version, n) on e.req = r.req
  where r.status = 1
  group by r.req, r.stream, r.expected, r.new
  having count(e.req) <> r.new - r.expected
      or min(e.version) <> r.expected + 1 or min(e.version - e.n) <> max(e.version - e.n) -- one after the other
      or not bool_and(e.stream = r.stream)
  limit 1;
  if found then
    raise exception 'the events of stream % are not those between its expected and its new version', wrong
      using errcode = 'unique_violation';
  end if;
  select r.stream into wrong from unnest(a.r_stream, status) r(stream, status) where r.status = 1
  group by r.stream having count(*) > 1 limit 1;
  if found then
    raise exception 'stream % has more than one request', wrong using errcode = 'unique_violation';
  end if;
end $$;
-- +goose StatementEnd

-- es_events inserts the events of accepted requests. The lock is held until the commit, so positions are in the
-- order of commits and a reader of "position > cursor" misses nothing. Nothing else may come between this and it.
-- +goose StatementBegin
create or replace function es_events(a es_appends, status smallint[]) returns void language plpgsql as $$
begin
  perform es_check(a, status);
  if coalesce(cardinality(a.e_req), 0) = 0 or not 1 = any (status) then
    return;
  end if;
  perform pg_advisory_xact_lock(es_lock_key());
  insert into events (stream, version, type, key, data, meta)
  select e.stream, e.version, e.type, e.key, e.data::json, e.meta::json
  from unnest(a.e_req, a.e_stream, a.e_version, a.e_type, a.e_key, a.e_data, a.e_meta)
       with ordinality e(req, stream, version, type, key, data, meta, n)
  where status[e.req] = 1
  order by n;
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
do $$
begin
  if exists (select from archived_parts) then
    raise exception 'parts of the event store are archived; bring them back first (feira admin unarchive)';
  end if;
  lock table events in access exclusive mode;
  create table events_plain (like events including storage, primary key (position), unique (stream, version));
  insert into events_plain select * from events;
  alter table events_plain alter recorded_at set default clock_timestamp(), alter position add generated always as identity;
  perform setval(pg_get_serial_sequence('events_plain', 'position'), last_value, is_called) from events_position_seq;
  drop table events;
  alter table events_plain rename to events;
  alter index events_plain_pkey rename to events_pkey;
  alter index events_plain_stream_version_key rename to events_stream_version_key;
  execute format('alter sequence %s rename to events_position_seq', pg_get_serial_sequence('events', 'position'));
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create or replace function es_events(a es_appends, status smallint[]) returns void language plpgsql as $$
begin
  if coalesce(cardinality(a.e_req), 0) = 0 or not 1 = any (status) then
    return;
  end if;
  perform pg_advisory_xact_lock(es_lock_key());
  insert into events (stream, version, type, key, data, meta)
  select e.stream, e.version, e.type, e.key, e.data::json, e.meta::json
  from unnest(a.e_req, a.e_stream, a.e_version, a.e_type, a.e_key, a.e_data, a.e_meta)
       with ordinality e(req, stream, version, type, key, data, meta, n)
  where status[e.req] = 1
  order by n;
end $$;
-- +goose StatementEnd
drop function es_check(es_appends, smallint[]), es_changed_at(text, bigint), es_archived(), es_make_parts(bigint, bigint),
  es_attach_part(bigint, bigint), es_new_part(bigint, bigint), es_parts();
drop table archived_streams, archived_parts;
