package eventstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestCommitSmoke(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := eventstore.New(db.Pool, eventstore.Options{Service: "orders"})
	a := eventstore.Append{Stream: "order-1", Shape: 1, State: []byte(`{"n":1}`),
		Events: []eventstore.Event{{ID: "1", Type: "x.v1", Key: "k", Data: []byte(`{"a": 1}`), Meta: []byte(`{"id":"1"}`)}}}
	if _, err := s.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	_, err := s.Append(t.Context(), a)
	var ce *eventstore.ConflictError
	if !errors.As(err, &ce) {
		t.Fatal(err)
	}
	st, err := s.Load(t.Context(), "order-1")
	fmt.Println(st, err, string(st.State), ce)
	h, err := s.History(t.Context(), "order-1", eventstore.Until{})
	fmt.Println(h, err)
	tx, _ := s.Begin(t.Context())
	m, err := tx.Load(t.Context(), []string{"b", "order-1"})
	fmt.Println(m, err)
	tx.Append(eventstore.Append{Stream: "b"})
	if err := tx.Commit(t.Context(), "es_commit"); err != nil {
		t.Fatal(err)
	}
}
