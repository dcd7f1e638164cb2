-- +goose Up
-- No constraint: an effect that happens twice is to be seen.
create table effects (n bigint generated always as identity, operator text, topic text, partition int, "offset" bigint, key text, id text);

-- +goose Down
drop table effects;
