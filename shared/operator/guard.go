package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// topicID asks the cluster which topic of that name there is now. A topic that was deleted and created again
// has another id: offsets of the old one mean nothing there.
func (r *run) topicID(topic string) (string, error) {
	broker := r.client.LeastLoadedBroker()
	if broker == nil {
		return "", errors.New("no broker answers")
	}
	_ = broker.Open(r.client.Config()) // it may be open already
	answer, err := broker.GetMetadata(sarama.NewMetadataRequest(r.client.Config().Version, []string{topic}))
	if err != nil {
		_ = broker.Close() // it is opened anew next time
		return "", fmt.Errorf("metadata of %s: %w", topic, err)
	}
	if len(answer.Topics) != 1 {
		return "", fmt.Errorf("metadata of %s: %d topics in the answer", topic, len(answer.Topics))
	}
	if err := answer.Topics[0].Err; !errors.Is(err, sarama.ErrNoError) {
		return "", fmt.Errorf("metadata of %s: %w", topic, err)
	}
	return answer.Topics[0].Uuid.String(), nil
}

// guard looks once a second whether the topics are still those that the sessions began on: a consumer of a
// topic that is recreated under it sees neither an error nor the records before its offset. Takes are held back
// from the first suspicion, and the operator stops by name when it stands.
func (r *run) guard(ctx context.Context) {
	suspected := map[string]time.Time{}
	for sleep(ctx, r.op.timing.guard) {
		for _, t := range r.op.def.Topics {
			want := r.idOf(t.Name)
			have, err := r.topicID(t.Name)
			if err != nil || want == "" || have == want {
				if err == nil {
					delete(suspected, t.Name)
					r.suspend(t.Name, false)
				}
				continue
			}
			r.suspend(t.Name, true)
			if suspected[t.Name].IsZero() {
				suspected[t.Name] = time.Now()
			}
			if time.Since(suspected[t.Name]) >= r.op.timing.replacedGrace {
				r.fail(&TopicReplacedError{
					Operator: r.op.def.Name, Topic: t.Name, Partition: wholeTopic,
					Want: "topic id " + want, Have: "topic id " + have,
				})
				return
			}
		}
	}
}
