package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Bounds of one connection. A body must arrive and an answer must be taken in time; event streams set their own
// deadline per write.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 30 * time.Second
	answerTimeout  = 45 * time.Second
	idleTimeout    = 90 * time.Second
	maxHeaderBytes = 32 << 10
	drainTimeout   = 10 * time.Second
)

type drainKey struct{}

// Draining returns a channel that is closed when the server begins to shut down: long polls and event streams
// should then end. Outside of [ServeListener] it never closes.
func Draining(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(drainKey{}).(chan struct{})
	return c
}

// ServeListener answers requests on a listener, which it closes, until ctx ends. Then it takes no new connections, tells
// long requests through [Draining], lets those in flight finish for up to 10 s, and closes.
func ServeListener(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	log = orDiscard(log)
	drain := make(chan struct{})
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		// Requests in flight outlive ctx: they have the drain to finish.
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), drainKey{}, drain)
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("web: serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	close(drain)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := srv.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were cut off after the drain", "after", drainTimeout)
		err = srv.Close()
	}
	if served := <-ended; err == nil && !errors.Is(served, http.ErrServerClosed) {
		err = served
	}
	if err != nil {
		return fmt.Errorf("web: shut down: %w", err)
	}
	return nil
}
