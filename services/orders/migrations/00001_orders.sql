-- +goose Up
-- The replica of the catalogue: prices at checkout come from here.
create table products (
    sku            text primary key,
    name           text    not null,
    price_amount   bigint  not null,
    price_currency text    not null,
    active         boolean not null
);

-- What the timer and the list of a customer's orders look for. Generated columns, so that an update that
-- leaves them as they were touches no index.
alter table streams
    add column due_at    bigint generated always as ((state ->> 'due_at')::bigint) stored,
    add column placed_us bigint generated always as ((state ->> 'placed_us')::bigint) stored,
    add column customer  text   generated always as (state ->> 'customer') stored;
create index streams_due on streams (due_at, stream) where due_at is not null;
create index streams_customer on streams (customer, placed_us desc, stream desc) where customer is not null;
create index streams_placed on streams (placed_us desc, stream desc) where customer is not null;

-- +goose Down
alter table streams drop column due_at, drop column customer, drop column placed_us;
drop table products;
