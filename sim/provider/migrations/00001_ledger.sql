-- +goose Up

-- One answer per Idempotency-Key, written in the transaction that changes the ledger.
create table requests (
  key         text primary key,
  request     bytea,                       -- SHA-256 of operation and body; null: voided before it came
  failures    int not null default 0,      -- answers of 500 given so far
  status      int,                         -- null: no answer is remembered yet
  body        json,                        -- json keeps the bytes as they were sent
  answered_at timestamptz,
  check ((status is null) = (body is null))
);

-- Amounts are minor units of the currency.
create table authorizations (
  id               text primary key,
  key              text not null unique,
  reference        text not null,          -- the client's own name for the payment
  status           text not null check (status in ('authorized', 'declined', 'captured', 'voided')),
  decline_code     text not null,
  card_fingerprint text not null,
  card_brand       text not null,
  card_last_four   text not null,
  behaviour        text not null,
  amount           bigint not null check (amount > 0),
  currency         text not null,
  captured         bigint not null check (captured between 0 and amount),
  refunded         bigint not null check (refunded between 0 and captured),
  disputed         boolean not null,
  created_at       timestamptz not null default clock_timestamp(),
  check ((status = 'captured') = (captured > 0)),
  check ((status = 'declined') = (decline_code <> ''))
);
create index authorizations_by_reference on authorizations (reference);

-- Only added to: one row per request that had an effect.
create table entries (
  id               text primary key,
  authorization_id text not null references authorizations,
  kind             text not null check (kind in ('authorize', 'capture', 'void', 'refund')),
  amount           bigint not null check (amount > 0),
  key              text not null unique,
  recorded_at      timestamptz not null default clock_timestamp()
);
create index entries_by_authorization on entries (authorization_id);

-- The key of the cards' fingerprints: two random UUIDs hold 244 random bits.
create table fingerprint_key (
  only_row boolean primary key default true check (only_row),
  secret   bytea not null
);
insert into fingerprint_key (secret)
values (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'utf8')));

-- +goose Down
drop table fingerprint_key, entries, authorizations, requests;
