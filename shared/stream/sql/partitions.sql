select count(*) from checkpoints where operator = $1 and topic = any ($2)
