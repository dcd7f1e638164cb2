-- +goose Up
-- op_commit is the last call of an operator's transaction, sent with the commit in one write: the streams and
-- jobs (es_streams), the checkpoints, then the store lock and the events (es_events). It raises when anything is
-- refused: FE002 or FE003 for an append, FE001 when a checkpoint is not the caller's any more.
-- +goose StatementBegin
create function op_commit(op text, c_topic text[], c_partition integer[], c_epoch bigint[], c_from bigint[],
                          c_to bigint[], c_source bigint[], c_adopt boolean[], a es_appends)
returns void language plpgsql as $$
declare
  s     record;
  moved integer;
begin
  s := es_streams(a, false);
  perform es_require(a, s.status, s.actual);

  -- Locked by topic and partition first: an update alone would lock in the order of its plan.
  perform 1 from checkpoints k join unnest(c_topic, c_partition) w(topic, partition)
    on k.topic = w.topic and k.partition = w.partition
    where k.operator = op order by k.topic, k.partition for update of k;
  update checkpoints k
    set next_offset = w.next_offset, source_position = w.source, adopt = w.adopt, updated_at = clock_timestamp()
    from unnest(c_topic, c_partition, c_epoch, c_from, c_to, c_source, c_adopt)
      w(topic, partition, epoch, start, next_offset, source, adopt)
    where k.operator = op and k.topic = w.topic and k.partition = w.partition
      and k.epoch = w.epoch and k.next_offset = w.start;
  get diagnostics moved = row_count;
  if moved <> cardinality(c_topic) then
    raise exception 'operator % is fenced: % of % checkpoints are not as it left them', op,
      cardinality(c_topic) - moved, cardinality(c_topic) using errcode = 'FE001';
  end if;

  perform es_events(a, s.status);
end $$;
-- +goose StatementEnd

-- +goose Down
drop function op_commit(text, text[], integer[], bigint[], bigint[], bigint[], bigint[], boolean[], es_appends);
