-- +goose Up
-- What became of the events of a partition. Ticks are no events, and an event without a key is none of this operator's.
alter table stream_watermarks
    add column watermark   bigint, -- highest ever reached, microseconds since 1970; null: none yet, or no windows
    add column received    bigint not null default 0,
    add column counted     bigint not null default 0,
    add column late        bigint not null default 0,
    add column quarantined bigint not null default 0,
    add constraint stream_watermarks_all_accounted check (received = counted + late + quarantined);

-- Events that came too late, or whose time cannot be true. Their data stay where they are, on the topic.
create table stream_late (
    operator    text   not null,
    topic       text   not null,
    partition   int    not null,
    "offset"    bigint not null, -- negative: filled in from the owner's store
    reason      text   not null check (reason in ('late', 'quarantined')),
    key         text   not null, -- the operator's; several are separated by commas
    id          text   not null,
    event_time  bigint not null, -- microseconds since 1970, as are the next two
    watermark   bigint not null, -- of the partition, when the event came
    recorded_at bigint,          -- null: strangers do not say
    noted_at    timestamptz not null default clock_timestamp(),
    primary key (operator, topic, partition, "offset")
);

-- What a pane holds so far, in parts that add up: each committed batch writes one row per partition and pane.
create table stream_partials (
    id        bigint generated always as identity primary key,
    operator  text   not null,
    topic     text   not null,
    partition int    not null,
    pane      bigint not null, -- its beginning, microseconds since 1970
    entries   json   not null  -- key to partial value
);
create index stream_partials_pane on stream_partials (operator, pane, topic, partition);

-- How far an operator's windows are closed.
create table stream_windows (
    operator     text   primary key,
    closed_until bigint not null, -- end of the newest window that is closed whole, microseconds since 1970
    closed_key   text   not null  -- of the next window that holds anything, keys up to this one are closed too; '': none
);

-- What was said as windows closed: which keys, so that a replay finds results that must not be there.
create table stream_closings (
    id         bigint generated always as identity primary key,
    operator   text   not null,
    window_end bigint not null, -- microseconds since 1970
    keys       json   not null, -- a list; a window with many is closed in several transactions
    closed_at  timestamptz not null default clock_timestamp()
);
create index stream_closings_window on stream_closings (operator, window_end);

-- +goose Down
drop table stream_closings, stream_windows, stream_partials, stream_late;
alter table stream_watermarks drop constraint stream_watermarks_all_accounted, drop column watermark,
    drop column received, drop column counted, drop column late, drop column quarantined;
