-- Jobs are inserted by the event store, in SQL and in batches. This tells River's clients, as its own insert
-- does, once per statement: a new job then starts within milliseconds instead of with the next poll.

-- +goose Up
-- +goose StatementBegin
create function jobs_wake() returns trigger language plpgsql as $$
begin
  perform pg_notify(current_schema() || '.river_insert', json_build_object('queue', q.queue)::text)
  from (select distinct queue from inserted where state = 'available') q;
  return null;
end $$;
-- +goose StatementEnd

create trigger jobs_wake after insert on river_job
  referencing new table as inserted for each statement execute function jobs_wake();

-- River searches neither arguments nor metadata of jobs; without these indexes a job costs less.
drop index if exists river_job_args_index;
drop index if exists river_job_metadata_index;
