-- The event store of one service. See doc.go for the order of locks.

-- +goose Up
create table events (
  position    bigint generated always as identity primary key, -- order of commit; never with a sequence cache > 1
  stream      text not null,
  version     bigint not null,
  type        text not null,
  key         text not null,
  data        json not null, -- json, not jsonb: it keeps the bytes that will be published
  meta        json not null, -- id, time, correlation, causation, traceparent, actor
  recorded_at timestamptz not null default clock_timestamp(),
  unique (stream, version)
);

-- A cache of fold(events) per stream. Room in each page keeps the updates within it (HOT).
create table streams (
  stream  text primary key,
  version bigint not null,
  shape   int not null,
  state   json not null
) with (fillfactor = 70);

-- What one call writes: parallel arrays of requests (r_), attempts of jobs to complete (a_), jobs to insert (j_)
-- and events (e_). *_req is the index of the request they belong to, from 1. A request with r_new = r_expected
-- writes no state. j_max 0 is River's default; j_at null is now.
create type es_appends as (
  r_stream text[], r_expected bigint[], r_new bigint[], r_shape int[], r_state text[], r_id text[],
  a_req int[], a_job bigint[], a_at timestamptz[],
  j_req int[], j_kind text[], j_args text[], j_queue text[], j_max int[], j_at timestamptz[],
  e_req int[], e_stream text[], e_version bigint[], e_type text[], e_key text[], e_data text[], e_meta text[]
);

-- es_create inserts missing streams at version 0, sorted. Where a row exists it is not touched: "on conflict"
-- alone would wait for whoever is changing that row.
-- +goose StatementBegin
create function es_create(names text[]) returns void language plpgsql as $$ -- which, unlike sql, keeps its plan
begin
  insert into streams (stream, version, shape, state)
  select n, 0, 0, 'null' from unnest(names) n
  where not exists (select from streams s where s.stream = n)
  order by n
  on conflict (stream) do nothing;
end $$;
-- +goose StatementEnd

-- es_load creates, locks and reads streams: the beginning of an operator's transaction.
-- +goose StatementBegin
create function es_load(names text[]) returns table (stream text, version bigint, shape int, state json)
language plpgsql as $$
begin
  perform es_create(names);
  return query
    select s.stream, s.version, s.shape, s.state from streams s
    where s.stream = any (names) order by s.stream for update;
end $$;
-- +goose StatementEnd

-- es_lock locks the streams of requests, sorted, and says which version each has. With skip, rows that somebody
-- else holds are left out.
-- +goose StatementBegin
create function es_lock(names text[], skip boolean) returns table (req int, version bigint) language plpgsql as $$
begin
  if skip then
    return query
      select r.i::int, s.version from unnest(names) with ordinality r(stream, i) join streams s on s.stream = r.stream
      order by s.stream for update of s skip locked;
  else
    return query
      select r.i::int, s.version from unnest(names) with ordinality r(stream, i) join streams s on s.stream = r.stream
      order by s.stream for update of s;
  end if;
end $$;
-- +goose StatementEnd

-- es_lock_jobs locks the jobs of attempts, by id, and says of each whether that attempt is the running one, and
-- whether that very attempt completed it.
-- +goose StatementBegin
create function es_lock_jobs(jobs bigint[], attempts timestamptz[], skip boolean)
returns table (n int, holds boolean, completed boolean) language plpgsql as $$
begin
  if skip then
    return query
      select a.i::int, j.state = 'running' and j.attempted_at = a.at, j.state = 'completed' and j.attempted_at = a.at
      from unnest(jobs, attempts) with ordinality a(job, at, i) join river_job j on j.id = a.job
      order by j.id for update of j skip locked;
  else
    return query
      select a.i::int, j.state = 'running' and j.attempted_at = a.at, j.state = 'completed' and j.attempted_at = a.at
      from unnest(jobs, attempts) with ordinality a(job, at, i) join river_job j on j.id = a.job
      order by j.id for update of j;
  end if;
end $$;
-- +goose StatementEnd

-- es_insert_jobs hands jobs to River. It needs River's tables only when there are any.
-- +goose StatementBegin
create function es_insert_jobs(a es_appends, status smallint[]) returns void language plpgsql as $$
begin
  insert into river_job (args, kind, max_attempts, metadata, priority, queue, scheduled_at, state, tags)
  select j.args::jsonb, j.kind, case j.max when 0 then 25 else j.max end, '{}', 1,
         case j.queue when '' then 'default' else j.queue end, coalesce(j.at, now()),
         case when j.at > now() then 'scheduled' else 'available' end::river_job_state, '{}'
  from unnest(a.j_req, a.j_kind, a.j_args, a.j_queue, a.j_max, a.j_at) with ordinality j(req, kind, args, queue, max, at, n)
  where status[j.req] = 1
  order by n;
end $$;
-- +goose StatementEnd

-- es_streams does all of an append that comes before the store lock: it locks, checks and writes streams, then
-- completes and inserts jobs. status per request: 0 another version (actual says which), 1 accepted, 2 busy (only
-- with skip), 3 the attempt is not the running one, 4 written before (the same events are already there).
-- +goose StatementBegin
create function es_streams(a es_appends, skip boolean, out status smallint[], out actual bigint[])
language plpgsql as $$
declare
  n       int := coalesce(cardinality(a.r_stream), 0);
  missing text[];
  timeout text;
  r       record;
begin
  status := array_fill(2::smallint, array[n]);
  actual := array_fill(0::bigint, array[n]);

  select array_agg(x.stream) into missing from unnest(a.r_stream, a.r_expected) x(stream, expected)
  where x.expected = 0 and not exists (select from streams s where s.stream = x.stream);
  if missing is not null then
    if skip then -- a row that somebody is just inserting cannot be skipped: give up on it soon (lock_not_available)
      timeout := current_setting('lock_timeout');
      perform set_config('lock_timeout', '50ms', true);
      perform es_create(missing);
      perform set_config('lock_timeout', timeout, true);
    else
      perform es_create(missing);
    end if;
  end if;

  for r in select * from es_lock(a.r_stream, skip) loop
    actual[r.req] := r.version;
    status[r.req] := (r.version = a.r_expected[r.req])::int;
  end loop;
  if not skip then -- absent, though expected to be there
    status := array_replace(status, 2::smallint, 0::smallint);
  end if;
  if 0 = any (status) then -- the ids before the attempt: after an unknown outcome both may say no
    for r in
      select q.req from unnest(a.r_stream, a.r_expected, a.r_id) with ordinality q(stream, expected, id, req)
      join events e on e.stream = q.stream and e.version = q.expected + 1
      where status[q.req] = 0 and q.id <> '' and e.meta ->> 'id' = q.id
    loop
      status[r.req] := 4;
    end loop;
  end if;

  if cardinality(a.a_req) > 0 then
    status := es_fence(a, status, skip);
  end if;

  update streams s set version = q.new, shape = q.shape, state = q.state::json
  from unnest(a.r_stream, a.r_expected, a.r_new, a.r_shape, a.r_state) with ordinality q(stream, expected, new, shape, state, req)
  where s.stream = q.stream and status[q.req] = 1 and q.new > q.expected;

  if cardinality(a.a_req) > 0 then
    update river_job j set state = 'completed', finalized_at = now()
    from unnest(a.a_req, a.a_job) f(req, job) where j.id = f.job and status[f.req] = 1;
  end if;
  if cardinality(a.j_req) > 0 then
    perform es_insert_jobs(a, status);
  end if;
end $$;
-- +goose StatementEnd

-- es_fence refuses requests whose attempt is not the running one. A request without events is recognised as
-- written before by its job.
-- +goose StatementBegin
create function es_fence(a es_appends, inout status smallint[], skip boolean) language plpgsql as $$
declare
  seen boolean[] := array_fill(false, array[cardinality(a.a_req)]);
  r    record;
  q    int;
begin
  for r in select * from es_lock_jobs(a.a_job, a.a_at, skip) loop
    q := a.a_req[r.n];
    seen[r.n] := true;
    if r.completed and a.r_id[q] = '' and status[q] in (0, 1) then
      status[q] := 4;
    elsif status[q] = 1 and not r.holds then
      status[q] := 3;
    end if;
  end loop;
  for i in 1 .. cardinality(seen) loop -- held by somebody, or gone
    if not seen[i] and status[a.a_req[i]] = 1 then
      status[a.a_req[i]] := case when skip then 2 else 3 end;
    end if;
  end loop;
end $$;
-- +goose StatementEnd

-- es_lock_key is the key of the store lock. Advisory locks are per database, as stores are. Whoever must know that no
-- event is stamped and not committed takes this lock too.
create function es_lock_key() returns bigint language sql immutable parallel safe as 'select 7310316185537';

-- es_events inserts the events of accepted requests. The lock is held until the commit, so positions are in the
-- order of commits and a reader of "position > cursor" misses nothing. Nothing else may come between this and it.
-- +goose StatementBegin
create function es_events(a es_appends, status smallint[]) returns void language plpgsql as $$
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

-- es_append writes what can be written and says of each request what became of it: the group commit.
-- +goose StatementBegin
create function es_append(a es_appends, skip boolean, out status smallint[], out actual bigint[])
language plpgsql as $$
begin
  select s.status, s.actual into status, actual from es_streams(a, skip) s;
  perform es_events(a, status);
end $$;
-- +goose StatementEnd

-- es_require raises unless all requests were accepted: FE002 names the first stream at another version, FE003 the
-- job whose attempt was lost.
-- +goose StatementBegin
create function es_require(a es_appends, status smallint[], actual bigint[]) returns void language plpgsql as $$
begin
  for i in 1 .. coalesce(cardinality(status), 0) loop
    if status[i] = 3 then
      raise exception 'the attempt of stream % is not the running one', a.r_stream[i] using errcode = 'FE003';
    elsif status[i] <> 1 then
      raise exception 'stream % is at version %, not at %', a.r_stream[i], actual[i], a.r_expected[i]
        using errcode = 'FE002',
              detail = json_build_object('stream', a.r_stream[i], 'expected', a.r_expected[i], 'actual', actual[i]);
    end if;
  end loop;
end $$;
-- +goose StatementEnd

-- es_commit writes all requests or raises.
-- +goose StatementBegin
create function es_commit(a es_appends) returns void language plpgsql as $$
declare
  s record;
begin
  s := es_streams(a, false);
  perform es_require(a, s.status, s.actual);
  perform es_events(a, s.status);
end $$;
-- +goose StatementEnd

-- +goose Down
drop function es_commit(es_appends), es_require(es_appends, smallint[], bigint[]), es_append(es_appends, boolean),
  es_events(es_appends, smallint[]), es_lock_key(), es_fence(es_appends, smallint[], boolean), es_streams(es_appends, boolean),
  es_insert_jobs(es_appends, smallint[]), es_lock_jobs(bigint[], timestamptz[], boolean), es_lock(text[], boolean),
  es_load(text[]), es_create(text[]);
drop type es_appends;
drop table streams, events;
