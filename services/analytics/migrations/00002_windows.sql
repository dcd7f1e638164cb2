-- +goose Up
-- The last revision of each closed window.
create table account_spend (
    account      text        not null,
    currency     text        not null,
    window_start timestamptz not null, -- included
    window_end   timestamptz not null, -- not included
    payments     bigint      not null,
    captured     bigint      not null, -- minor units, as refunded
    refunds      bigint      not null,
    refunded     bigint      not null,
    revision     int         not null check (revision > 0),
    primary key (account, window_start, currency)
);
create index account_spend_window on account_spend (window_start, account, currency);

create table top_products (
    window_start timestamptz primary key,
    window_end   timestamptz not null,
    products     json        not null, -- a list, best first: {"sku", "quantity", "orders"}
    revision     int         not null check (revision > 0)
);

-- What the windows here were counted with. Windows of another length would not add up with them.
create table window_lengths (
    operator text   primary key,
    seconds  bigint not null
);

-- +goose Down
drop table window_lengths;
drop table top_products;
drop table account_spend;
