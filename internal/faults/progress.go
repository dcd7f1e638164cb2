package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress shows what runs: on a terminal in a line that changes, everywhere in a line for each step that is over.
type progress struct {
	all   int
	line  bool
	stop  chan struct{}
	ended chan struct{}

	mu      sync.Mutex
	over    int
	running []string
	began   time.Time
}

func newProgress(all int) *progress {
	p := &progress{
		all: all, line: term.IsTerminal(int(os.Stdout.Fd())), began: time.Now(), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go p.tick()
	return p
}

func (p *progress) tick() {
	defer close(p.ended)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-second.C:
			p.mu.Lock()
			p.show()
			p.mu.Unlock()
		case <-p.stop:
			return
		}
	}
}

// show draws the line anew; the lock is held.
func (p *progress) show() {
	if p.line {
		fmt.Printf("\r\x1b[K[%d/%d] %s … %s", p.over, p.all, strings.Join(p.running, ", "), since(p.began))
	}
}

func since(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }

// known counts a step that passed before.
func (p *progress) known() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over++
}

// begin shows a step until its end, of which a line stays, and where it failed what it said.
func (p *progress) begin(what string) (end func(result)) {
	began := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = append(p.running, what)
	p.show()
	return func(r result) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over++
		p.running = slices.DeleteFunc(p.running, func(s string) bool { return s == what })
		if p.line {
			fmt.Print("\r\x1b[K")
		}
		outcome := "ok"
		if !r.Good {
			outcome = "FAILED"
		}
		fmt.Printf("[%d/%d] %s: %s, %s\n", p.over, p.all, what, outcome, since(began))
		if !r.Good {
			fmt.Println(r.Said)
		}
	}
}

func (p *progress) close() {
	close(p.stop)
	<-p.ended
}
