package provider

import (
	"encoding/json"
	"net/http"
	"strconv"
)

func unavailable() *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "Try again with the same Idempotency-Key; it is safe."}
}

func send(w http.ResponseWriter, out reply) {
	if out.replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.Header().Set("Content-Type", contentType(out.status))
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body) // a client that has gone asks again
}

func sendStored(w http.ResponseWriter, out reply) {
	w.Header().Set("Answer-Status", strconv.Itoa(out.status))
	w.Header().Set("Content-Type", contentType(out.status))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(out.body)
}

func sendProblem(w http.ResponseWriter, p *Problem) {
	body, err := json.Marshal(p.titled())
	if err != nil {
		body = []byte(`{}`) // cannot happen: strings and a number
	}
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	send(w, reply{status: p.Status, body: body})
}

func contentType(status int) string {
	if status >= http.StatusBadRequest {
		return "application/problem+json"
	}
	return "application/json"
}
