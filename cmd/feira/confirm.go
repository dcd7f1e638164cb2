package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// UnconfirmedError says that something that needs a yes was asked for where nobody can give it, or was answered otherwise.
type UnconfirmedError struct {
	What  string // that would have happened
	Asked bool   // a person said no
}

func (e *UnconfirmedError) Error() string {
	if e.Asked {
		return "nothing was done"
	}
	return e.What + ", and there is no terminal to ask on: nothing was done; give --dry-run to see what would come of it, or --yes to do it"
}

// confirm has a person say yes to what would happen, on the terminal; --yes is the answer of scripts.
func confirm(ctx context.Context, what string, yes bool) error {
	if yes {
		fmt.Fprintln(os.Stderr, what)
		return nil
	}
	if err := canAnswer(what, yes); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s. Go on? [y/N] ", what)
	answer := make(chan string, 1)
	go func() { // a read cannot be given up
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // its end is no yes either
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
	case <-ctx.Done():
	}
	return &UnconfirmedError{What: what, Asked: true}
}

// canAnswer refuses what needs a yes that nobody can give, before anything is looked up for it.
func canAnswer(what string, yes bool) error {
	if !yes && (!term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd()))) {
		return &UnconfirmedError{What: what}
	}
	return nil
}

// plural is a number with its word.
func plural[N int | int64](n N, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
