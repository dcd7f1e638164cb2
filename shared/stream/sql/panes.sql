select pane, entries from stream_partials where operator = $1 and pane >= $2 and pane < $3 order by pane
