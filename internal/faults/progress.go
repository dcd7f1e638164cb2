package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// progress is the line of a step that runs.
type progress struct {
	what  string
	began time.Time
	stop  chan struct{}
	ended chan struct{}
}

// begin shows a step with the time it takes: on a terminal a line that changes, elsewhere one when it is over.
func begin(what string) *progress {
	p := &progress{what: what, began: time.Now(), stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		if !term.IsTerminal(int(os.Stdout.Fd())) {
			return
		}
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for {
			fmt.Printf("\r\x1b[K%s … %s", p.what, p.took())
			select {
			case <-second.C:
			case <-p.stop:
				fmt.Print("\r\x1b[K")
				return
			}
		}
	}()
	return p
}

func (p *progress) took() time.Duration { return time.Since(p.began).Round(time.Second) }

// end leaves one line with the outcome.
func (p *progress) end(r result) {
	close(p.stop)
	<-p.ended
	outcome := "ok"
	if !r.Good {
		outcome = "FAILED"
	}
	fmt.Printf("%s: %s, %s\n", p.what, outcome, p.took())
}
