-- One statement, so that panes and what is closed are those of one moment.
select coalesce(w.closed_until, $5), p.pane,
       case when $4 = '' then p.entries else json_build_object($4::text, p.entries -> $4) end
  from stream_partials p left join stream_windows w on w.operator = p.operator
 where p.operator = $1 and p.pane >= $2 and p.pane < $3 and ($4 = '' or p.entries -> $4 is not null)
 order by p.pane
