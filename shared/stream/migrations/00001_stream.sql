-- +goose Up
-- Keyed state as a log of deltas: one row for each committed batch of a partition, holding the keys that the
-- batch changed. A row is needed until the watermark has passed expires_at, which never falls within a partition;
-- so the log cleans itself and needs no compaction.
create table stream_deltas (
    id         bigint generated always as identity primary key, -- the order of one partition's batches
    operator   text   not null,
    topic      text   not null,
    partition  int    not null,
    expires_at bigint not null, -- event time, microseconds since 1970
    entries    json   not null
);
create index stream_deltas_expiry on stream_deltas (operator, topic, partition, expires_at);

create table stream_watermarks (
    operator   text   not null,
    topic      text   not null,
    partition  int    not null,
    max_time   bigint not null, -- highest event time seen, microseconds since 1970
    expires_at bigint not null, -- of the newest delta row
    primary key (operator, topic, partition)
);

-- +goose Down
drop table stream_deltas;
drop table stream_watermarks;
