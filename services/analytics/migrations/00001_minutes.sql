-- +goose Up
create table clicks_per_minute (
    action text        not null,
    minute timestamptz not null,
    clicks bigint      not null check (clicks > 0),
    primary key (action, minute)
);

create index clicks_per_minute_minute on clicks_per_minute (minute);

create table orders_per_minute (
    minute timestamptz primary key,
    orders bigint      not null check (orders > 0)
);

-- +goose Down
drop table orders_per_minute;
drop table clicks_per_minute;
