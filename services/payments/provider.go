package payments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/feira-shop/feira/shared/telemetry"
)

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 64 << 10

// codeKeyReused says that a key came with another request before: an error of ours, and no word about money.
const codeKeyReused = "idempotency_key_reused"

// codeCaptured says that the money was taken before. It is the shop's, whatever the status of the answer.
const codeCaptured = "captured"

// notCapturable are the conflicts that end a capture: what the authorisation is instead.
var notCapturable = []string{CodeVoided, "declined", "expired"}

// Provider is a client of the payment provider. Every request carries an idempotency key, so it can be repeated
// until there is an answer; a repeat gets the first answer.
type Provider struct {
	base   string
	secret string
	http   *http.Client
}

// ProviderError is an answer of the provider that is no outcome: a request it does not understand or allow, or a
// failure of its own (status 500 and above). The same request may be repeated with the same key.
type ProviderError struct {
	Request string
	Status  int    // HTTP status
	Code    string // of the problem; "" if the answer was no problem document
}

func (e *ProviderError) Error() string {
	return fmt.Sprintf("payments: the provider answered %s with status %d, code %q; expected an outcome", e.Request, e.Status, e.Code)
}

// answered says whether an error proves that the provider is there: it answered, though not as hoped.
func answered(err error) bool {
	var p *ProviderError
	return errors.As(err, &p) && p.Status < http.StatusInternalServerError
}

// MismatchError says that the provider did something else than it was asked to. A person must look.
type MismatchError struct{ Request, Want, Have string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("payments: the provider answered %s with %s, but was asked for %s", e.Request, e.Have, e.Want)
}

// NewProvider makes a client. baseURL is the provider's address, secret its API key; timeout bounds one request.
func NewProvider(baseURL, secret string, timeout time.Duration) *Provider {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		MaxIdleConnsPerHost:   64, // about as many as there are workers
		IdleConnTimeout:       time.Minute,
		ResponseHeaderTimeout: timeout,
	}
	return &Provider{
		base:   strings.TrimSuffix(baseURL, "/"),
		secret: secret,
		http: &http.Client{
			Transport:     telemetry.Transport(transport, requestName),
			Timeout:       timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// requestName names requests in traces by what is asked for: POST authorizations, POST capture.
func requestName(r *http.Request) string { return r.Method + " " + path.Base(r.URL.Path) }

type cardAnswer struct {
	Fingerprint string `json:"fingerprint"`
	Brand       string `json:"brand"`
	LastFour    string `json:"last_four"`
}

func (c *cardAnswer) card() Card {
	if c == nil {
		return Card{}
	}
	return Card{Fingerprint: c.Fingerprint, Brand: c.Brand, LastFour: c.LastFour}
}

type authorizationAnswer struct {
	ID          string      `json:"id"`
	Status      string      `json:"status"`
	DeclineCode string      `json:"decline_code"`
	Card        *cardAnswer `json:"card"`
	Amount      int64       `json:"amount"`
}

// Authorize reserves money.
func (p *Provider) Authorize(ctx context.Context, j AuthorizeJob) (cmd any, err error) {
	body := map[string]any{"amount": j.Amount.Amount, "currency": j.Amount.Currency, "token": j.Token, "reference": j.Payment}
	var a authorizationAnswer
	status, code, err := p.post(ctx, "/v1/authorizations", j.Key, body, &a)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusCreated && a.Status == "authorized":
		if a.Amount != j.Amount.Amount {
			return nil, &MismatchError{Request: "an authorisation", Want: fmt.Sprint(j.Amount.Amount), Have: fmt.Sprint(a.Amount)}
		}
		return Authorized{Authorization: a.ID, Card: a.Card.card()}, nil
	case status == http.StatusCreated && a.Status == "declined":
		return Declined{Code: a.DeclineCode, Card: a.Card.card()}, nil
	case status == http.StatusConflict && code == CodeVoided:
		return Blocked{}, nil
	case status == http.StatusUnprocessableEntity && code != codeKeyReused:
		return Declined{Code: code}, nil // a token that it does not know, for example
	}
	return nil, &ProviderError{Request: "an authorisation", Status: status, Code: code}
}

// Capture takes reserved money. A conflict with a code that is no word about the money, such as that of a request which
// is being done at the same time, is no outcome: asked again, it gets one.
func (p *Provider) Capture(ctx context.Context, j CaptureJob) (cmd any, err error) {
	path := "/v1/authorizations/" + url.PathEscape(j.Authorization) + "/capture"
	var a struct {
		Status string `json:"status"`
	}
	status, code, err := p.post(ctx, path, j.Key, map[string]any{"amount": j.Amount.Amount}, &a)
	refused := status == http.StatusPaymentRequired || status == http.StatusConflict
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusOK && a.Status == codeCaptured, refused && code == codeCaptured:
		return Captured{}, nil // also by an earlier request whose key the provider has forgotten
	case status == http.StatusPaymentRequired, status == http.StatusConflict && slices.Contains(notCapturable, code):
		return CaptureRefused{Code: code}, nil
	}
	return nil, &ProviderError{Request: "a capture", Status: status, Code: code}
}

// Void gives an authorisation back; where there is none yet, the provider never makes it.
func (p *Provider) Void(ctx context.Context, j VoidJob) (cmd any, err error) {
	var a struct {
		Status        string               `json:"status"`
		Authorization *authorizationAnswer `json:"authorization"`
	}
	status, code, err := p.post(ctx, "/v1/voids", j.Key, map[string]any{"authorization_key": j.AuthorizationKey}, &a)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusOK && a.Status == "voided":
		var card Card
		if a.Authorization != nil {
			card = a.Authorization.Card.card()
		}
		return Voided{Card: card}, nil
	}
	return nil, &ProviderError{Request: "a void", Status: status, Code: code}
}

// Refund gives captured money back.
func (p *Provider) Refund(ctx context.Context, j RefundJob) (cmd any, err error) {
	path := "/v1/authorizations/" + url.PathEscape(j.Authorization) + "/refunds"
	var a struct {
		Status string `json:"status"`
	}
	status, code, err := p.post(ctx, path, j.Key, map[string]any{"amount": j.Amount.Amount}, &a)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusCreated && a.Status == "refunded":
		return Refunded{Key: j.Key}, nil
	case status == http.StatusPaymentRequired, status == http.StatusConflict:
		return RefundRefused{Key: j.Key, Code: code}, nil
	}
	return nil, &ProviderError{Request: "a refund", Status: status, Code: code}
}

// post sends a request and reads its answer into out when it succeeded, else the problem's code.
func (p *Provider) post(ctx context.Context, path, key string, body, out any) (status int, code string, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+path, bytes.NewReader(data))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+p.secret)
	req.Header.Set("Idempotency-Key", key)
	res, err := p.http.Do(req)
	if err != nil {
		return 0, "", fmt.Errorf("payments: ask the provider: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes))
	if err != nil {
		return 0, "", fmt.Errorf("payments: read the provider's answer: %w", err)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		var problem struct {
			Code string `json:"code"`
		}
		_ = json.Unmarshal(answer, &problem) // a proxy's answer is no problem document: the status says enough
		return res.StatusCode, problem.Code, nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return 0, "", fmt.Errorf("payments: understand the provider's answer to %s: %w", path, err)
	}
	return res.StatusCode, "", nil
}
