-- +goose Up
create table products (
    sku            text primary key,
    version        bigint  not null, -- of the stream product-<sku>
    name           text    not null,
    description    text    not null,
    price_amount   bigint  not null check (price_amount >= 0),
    price_currency text    not null,
    active         boolean not null,
    updated_at     timestamptz not null -- time of the last event
);

-- +goose Down
drop table products;
