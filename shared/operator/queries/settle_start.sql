update checkpoints set next_offset = $5, topic_id = $6
where operator = $1 and topic = $2 and partition = $3 and epoch = $4
