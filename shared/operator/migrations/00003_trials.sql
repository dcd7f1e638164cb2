-- +goose Up
-- A trial is a request too: what would come of a replay. Its answers go when they were read.
alter table operator_requests drop constraint operator_requests_action_check,
  add constraint operator_requests_action_check check (action in ('replay', 'discard', 'fill', 'try'));

create table operator_trials (
  request  bigint  not null references operator_requests (id) on delete cascade,
  "offset" bigint  not null,
  outcome  text    not null check (outcome in ('applied', 'passed over', 'rejected', 'blocked', 'held up')),
  detail   text    not null,
  primary key (request, "offset")
);

-- op_rehearse does all that op_commit does and then raises FE009, so that nothing of its transaction can ever be
-- committed: FE009 says that op_commit would have gone through.
-- +goose StatementBegin
create function op_rehearse(op text, c_topic text[], c_partition integer[], c_epoch bigint[], c_from bigint[],
                            c_to bigint[], c_source bigint[], c_adopt boolean[], a es_appends)
returns void language plpgsql as $$
begin
  perform op_commit(op, c_topic, c_partition, c_epoch, c_from, c_to, c_source, c_adopt, a);
  raise exception 'rehearsed, and rolled back' using errcode = 'FE009';
end $$;
-- +goose StatementEnd

-- +goose Down
drop function op_rehearse(text, text[], integer[], bigint[], bigint[], bigint[], bigint[], boolean[], es_appends);
drop table operator_trials;
delete from operator_requests where action = 'try';
alter table operator_requests drop constraint operator_requests_action_check,
  add constraint operator_requests_action_check check (action in ('replay', 'discard', 'fill'));
