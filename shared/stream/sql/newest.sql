select s.stream, s.version, e.data
  from streams s left join events e on e.stream = s.stream and e.version = s.version
 where s.stream = any ($1) and s.version > 0
