-- Why the relay publishes nothing until a person has looked at it.

-- +goose Up
alter table relay_cursor add column stopped text not null default ''; -- the named error; '': it goes on by itself

-- +goose Down
alter table relay_cursor drop column stopped;
