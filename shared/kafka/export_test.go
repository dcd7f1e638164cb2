package kafka

// SetBatchBytes has calls cut into smaller batches.
func (p *Publisher) SetBatchBytes(n int) { p.batchBytes = n }
