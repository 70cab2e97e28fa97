package invocation

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// Listing returns how records are written to standard output.
func (in *Invocation) Listing(t *store.Table) say.Listing {
	terminal, caps := in.Stdout.Terminal && !in.JSON, t.Layout.Capabilities()
	return say.Listing{
		Table: t.Table, JSON: in.JSON, Terminal: terminal,
		Columns:  in.Stdout.Columns(),
		SortKeys: caps.SortKey, Expiry: caps.Expiry,
	}
}

// Print writes v as JSON with --json, and the text otherwise.
func (in *Invocation) Print(v any, format string, args ...any) error {
	if in.JSON {
		return json.NewEncoder(in.Stdout).Encode(v)
	}
	_, err := fmt.Fprintf(in.Stdout, format, args...)
	return err
}

// SayURL writes the URL of the server: in a sentence on a terminal, alone in a pipe.
func (in *Invocation) SayURL(url string, asJSON map[string]string, words string, args ...any) error {
	if in.Stdout.Terminal {
		return in.Print(asJSON, words, args...)
	}
	return in.Print(asJSON, "%s\n", url)
}

// CanAsk reports whether the user can be asked at a terminal.
func (in *Invocation) CanAsk() bool { return say.IsTerminal(in.Stdin) && in.Stderr.Terminal }

// Confirm asks a yes-or-no question at the terminal. Unless the answer is yes, it returns
// an error that ends the command with the message no. It returns early only if ctx ends.
func (in *Invocation) Confirm(ctx context.Context, question, no string) error {
	fmt.Fprint(in.Stderr, question)
	answers := make(chan string, 1)
	go func() { // a read cannot be interrupted: the goroutine stays until the process ends
		line, _ := bufio.NewReader(in.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer != "y" && answer != "yes" {
			return failure.Exit(failure.CodeNo, errors.New(no))
		}
		return nil
	case <-ctx.Done():
		fmt.Fprintln(in.Stderr)
		return context.Cause(ctx)
	}
}
