-- +goose Up
create table clicks_per_minute (
    action text        not null,
    minute timestamptz not null, -- when it begins, by the time that the clicks carry
    clicks bigint      not null check (clicks > 0),
    primary key (minute, action)
);
create index clicks_per_minute_of_action on clicks_per_minute (action, minute);

-- The same clicks, over all of time.
create table clicks_per_action (
    action text   primary key,
    clicks bigint not null check (clicks > 0)
);

create table orders_per_minute (
    minute timestamptz primary key, -- when it begins, by the time that orders were placed
    orders bigint      not null check (orders > 0)
);

-- +goose Down
drop table orders_per_minute;
drop table clicks_per_action;
drop table clicks_per_minute;
