package provider

import "net/http"

// state is what the store knows when a request comes in. All of it is locked until the effect is written.
type state struct {
	failures      int            // answers of 500 given under this key so far
	authorization *Authorization // the one the request is about; nil: there is none
}

// effect is what a request does: written in one transaction, together with the answer.
type effect struct {
	status int // HTTP status of the answer
	body   any // its JSON
	// failed means: count the answer and do not remember it, so that a repeat is decided anew.
	failed        bool
	authorization *Authorization // as it is now; nil: untouched
	entry         *Entry         // nil: nothing moved
	voidKey       string         // no authorisation may ever be made with this key
	late          bool           // the answer is to come too late
}

// command is a request that changes the ledger. Its JSON is what a repeat of it must equal.
type command interface {
	operation() string
	// authorizationID and authorizationKey say which authorisation it is about; at most one is set.
	authorizationID() string
	authorizationKey() string
	// decide is pure; id is a new unique id for what the command creates. A Problem in effect.body is an answer
	// of the ledger and remembered, a returned one is not.
	decide(st state, id string) (effect, *Problem)
}

type authorize struct {
	Key       string
	Reference string
	Amount    int64
	Currency  string
	Card      Card
	Behaviour string
}

func (authorize) operation() string        { return "authorize" }
func (authorize) authorizationID() string  { return "" }
func (authorize) authorizationKey() string { return "" }

func (c authorize) decide(st state, id string) (effect, *Problem) {
	b := behaviourNamed(c.Behaviour)
	if st.failures < b.failures {
		p := &Problem{Status: http.StatusInternalServerError, Code: "processing_error", Detail: "The card could not be processed. Try again with the same Idempotency-Key."}
		return effect{status: p.Status, body: p.titled(), failed: true}, nil
	}
	a := Authorization{
		ID: "auth_" + id, Key: c.Key, Reference: c.Reference, Status: Authorized, Card: c.Card,
		Amount: c.Amount, Currency: c.Currency, Behaviour: c.Behaviour,
	}
	out := effect{status: http.StatusCreated, authorization: &a, late: b.late}
	if b.decline != "" {
		a.Status, a.DeclineCode = Declined, b.decline
	} else {
		out.entry = &Entry{ID: "entry_" + id, Authorization: a.ID, Kind: EntryAuthorize, Amount: a.Amount}
	}
	out.body = a
	return out, nil
}

type capture struct {
	ID     string
	Amount int64
}

func (capture) operation() string          { return "capture" }
func (c capture) authorizationID() string  { return c.ID }
func (c capture) authorizationKey() string { return "" }

func (c capture) decide(st state, id string) (effect, *Problem) {
	if st.authorization == nil {
		return effect{}, unknownAuthorization()
	}
	a, p := st.authorization.capture(c.Amount)
	if p != nil {
		return answerOf(p), nil
	}
	entry := Entry{ID: "entry_" + id, Authorization: a.ID, Kind: EntryCapture, Amount: c.Amount}
	return effect{status: http.StatusOK, body: a, authorization: &a, entry: &entry}, nil
}

type void struct{ ID string }

func (void) operation() string          { return "void" }
func (c void) authorizationID() string  { return c.ID }
func (c void) authorizationKey() string { return "" }

func (c void) decide(st state, id string) (effect, *Problem) {
	if st.authorization == nil {
		return effect{}, unknownAuthorization()
	}
	return voidAuthorization(*st.authorization, id, func(a Authorization) any { return a }), nil
}

type voidByKey struct{ AuthorizationKey string }

// voidedByKey says that no money is held under a key, nor ever will be.
type voidedByKey struct {
	Status        Status         `json:"status"`
	Authorization *Authorization `json:"authorization"` // null: there was none
}

func (voidByKey) operation() string          { return "void_by_key" }
func (c voidByKey) authorizationID() string  { return "" }
func (c voidByKey) authorizationKey() string { return c.AuthorizationKey }

func (c voidByKey) decide(st state, id string) (effect, *Problem) {
	if st.authorization == nil {
		return effect{status: http.StatusOK, body: voidedByKey{Status: Voided}, voidKey: c.AuthorizationKey}, nil
	}
	return voidAuthorization(*st.authorization, id, func(a Authorization) any { return voidedByKey{Voided, &a} }), nil
}

func voidAuthorization(before Authorization, id string, body func(Authorization) any) effect {
	a, p := before.void()
	if p != nil {
		return answerOf(p)
	}
	out := effect{status: http.StatusOK, body: body(a)}
	if a.Status != before.Status {
		out.authorization = &a
		out.entry = &Entry{ID: "entry_" + id, Authorization: a.ID, Kind: EntryVoid, Amount: a.Amount}
	}
	return out
}

type refund struct {
	ID     string
	Amount int64
}

// refundAnswer is the answer to a refund.
type refundAnswer struct {
	ID            string `json:"id"`
	Status        string `json:"status"`
	Authorization string `json:"authorization"`
	Amount        int64  `json:"amount"`
	RefundedSoFar int64  `json:"refunded_so_far"`
}

func (refund) operation() string          { return "refund" }
func (c refund) authorizationID() string  { return c.ID }
func (c refund) authorizationKey() string { return "" }

func (c refund) decide(st state, id string) (effect, *Problem) {
	if st.authorization == nil {
		return effect{}, unknownAuthorization()
	}
	a, p := st.authorization.refund(c.Amount)
	if p != nil {
		return answerOf(p), nil
	}
	entry := Entry{ID: "refund_" + id, Authorization: a.ID, Kind: EntryRefund, Amount: c.Amount}
	body := refundAnswer{ID: entry.ID, Status: "refunded", Authorization: a.ID, Amount: c.Amount, RefundedSoFar: a.Refunded}
	return effect{status: http.StatusCreated, body: body, authorization: &a, entry: &entry}, nil
}

func answerOf(p *Problem) effect { return effect{status: p.Status, body: p.titled()} }

func unknownAuthorization() *Problem {
	return notFound("There is no such authorisation.")
}
