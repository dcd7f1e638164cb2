update requests set request = $2, failures = failures + 1 where key = $1
