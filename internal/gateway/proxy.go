package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/web"
)

const (
	dialTimeout   = 2 * time.Second
	answerTimeout = 30 * time.Second // until the headers of an answer; a service's own deadline is shorter
	streamTimeout = 15 * time.Second // a client that takes nothing of an event stream for so long is gone
	idlePerHost   = 128              // connections kept to one service
)

// Proxy hands requests to the service at an address ("host:port" or "http://host:port"). Event streams pass
// through as they are written. A service that cannot be reached answers 503. With a tracer (nil: none) the service
// continues the trace of a span here.
func Proxy(address string, log *slog.Logger, tracer *telemetry.Tracer) (http.Handler, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	target, err := url.Parse(address)
	if err != nil || target.Host == "" {
		return nil, fmt.Errorf("gateway: %q is not the address of a service, such as orders:8081", address)
	}
	fail := web.Failures(log)
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded() // what the client claimed in these headers is gone already
			r.Out.Host = r.In.Host
			if here := telemetry.Traceparent(r.In.Context()); here != "" {
				r.Out.Header.Set("Traceparent", here)
			}
		},
		Transport:      transport(),
		ModifyResponse: followDrain,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, context.Canceled) {
				err = fmt.Errorf("client left: %w", err)
			}
			w.Header().Set("X-Request-Id", web.RequestID(r.Context()))
			fail(w, r, web.NewError(web.Unavailable, "service_unreachable", "The service cannot be reached; repeat the same request.").Because(err))
		},
	}
	return tracer.Serve(pattern)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		ctx = context.WithValue(ctx, cancelKey{}, cancel)
		// The service names the request in its answer, with the id that it gets from us.
		w.Header().Del("X-Request-Id")
		p.ServeHTTP(&streamWriter{ResponseWriter: w, rc: http.NewResponseController(w)}, r.WithContext(ctx))
	})), nil
}

// pattern is the path of a request as the gateway routes it.
func pattern(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); c != nil {
		return c.RoutePattern()
	}
	return ""
}

func transport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   idlePerHost,
		IdleConnTimeout:       60 * time.Second,
		ResponseHeaderTimeout: answerTimeout,
		DisableCompression:    true, // bodies pass as they are
	}
}

type cancelKey struct{}

// followDrain ends an event stream when this server drains: it would hold up the shutdown, and the client
// comes back with Last-Event-ID.
func followDrain(resp *http.Response) error {
	ctx := resp.Request.Context()
	cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc)
	if ok && isStream(resp.Header) {
		go func() {
			select {
			case <-web.Draining(ctx):
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return nil
}

// streamWriter gives an event stream a deadline per write instead of the server's own for a whole answer.
type streamWriter struct {
	http.ResponseWriter
	rc *http.ResponseController
}

func (s *streamWriter) Write(p []byte) (int, error) {
	if isStream(s.Header()) {
		_ = s.rc.SetWriteDeadline(time.Now().Add(streamTimeout)) // test recorders have none
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap lets the proxy flush.
func (s *streamWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func isStream(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}
