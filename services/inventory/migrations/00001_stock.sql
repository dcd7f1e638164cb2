-- +goose Up
-- One row per product: what is there and what of it is promised.
create table stock (
    sku      text primary key,
    on_hand  bigint not null check (on_hand >= 0),
    reserved bigint not null check (reserved >= 0),
    check (reserved <= on_hand)
) with (fillfactor = 50); -- the busiest rows of the shop: room for updates on their own page

-- +goose Down
drop table stock;
