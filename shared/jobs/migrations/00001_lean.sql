-- Jobs are found by their state and id only. Without the indexes by which people could search arguments and
-- metadata, each change of a job costs less.

-- +goose Up
drop index if exists river_job_args_index;
drop index if exists river_job_metadata_index;
