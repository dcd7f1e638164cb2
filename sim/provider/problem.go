package provider

import (
	"fmt"
	"net/http"
)

// Problem is an error answer, application/problem+json by RFC 9457.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"` // for programs: stable
	Detail string `json:"detail,omitempty"`
	Param  string `json:"param,omitempty"` // the field or header that is wrong
}

func (p *Problem) Error() string {
	return fmt.Sprintf("provider: %d %s: %s", p.Status, p.Code, p.Detail)
}

func (p *Problem) titled() *Problem {
	titled := *p
	titled.Title = http.StatusText(p.Status)
	return &titled
}

// invalid refuses a request for what is in it. Such an answer is not remembered.
func invalid(param, code, detail string) *Problem {
	return &Problem{Status: http.StatusUnprocessableEntity, Code: code, Param: param, Detail: detail}
}

// malformed refuses a request that cannot be read. Such an answer is not remembered.
func malformed(param, code, detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: code, Param: param, Detail: detail}
}

// refused is the answer of the ledger to a request that it understood: no money moved.
func refused(code, detail string) *Problem {
	return &Problem{Status: http.StatusPaymentRequired, Code: code, Detail: detail}
}

func conflict(code, detail string) *Problem {
	return &Problem{Status: http.StatusConflict, Code: code, Detail: detail}
}

func notFound(detail string) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: "not_found", Detail: detail}
}

func keyReused() *Problem {
	return invalid("Idempotency-Key", "idempotency_key_reused",
		"This Idempotency-Key was used for another request. Repeat that one unchanged, or send this one with a new key.")
}

// voidedKey is what an authorisation gets whose key was voided before it arrived.
func voidedKey() *Problem {
	return conflict("voided", "An authorisation with this Idempotency-Key was voided before it arrived.")
}
