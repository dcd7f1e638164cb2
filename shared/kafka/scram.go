package kafka

import (
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// scramHash is nil for what is no SCRAM mechanism.
func scramHash(m sarama.SASLMechanism) scram.HashGeneratorFcn {
	switch m {
	case sarama.SASLTypeSCRAMSHA256:
		return scram.SHA256
	case sarama.SASLTypeSCRAMSHA512:
		return scram.SHA512
	}
	return nil
}

// exchange is one sign-in by SCRAM: the password never leaves the process, and the broker proves that it knows it too.
type exchange struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

var _ sarama.SCRAMClient = (*exchange)(nil)

// Begin implements [sarama.SCRAMClient].
func (e *exchange) Begin(user, password, authzID string) error {
	client, err := e.hash.NewClient(user, password, authzID)
	if err != nil {
		return errUnprepared
	}
	e.conversation = client.NewConversation()
	return nil
}

// Step implements [sarama.SCRAMClient].
func (e *exchange) Step(challenge string) (string, error) { return e.conversation.Step(challenge) }

// Done implements [sarama.SCRAMClient].
func (e *exchange) Done() bool { return e.conversation.Done() }
