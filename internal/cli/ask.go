package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
)

// canAsk reports whether there is a terminal to ask at.
func (a *app) canAsk() bool { return say.IsTerminal(a.Stdin) && a.Stderr.Terminal }

// confirm asks a yes-or-no question at the terminal. Unless the answer is yes, it
// returns the error that ends the command and says no. It returns early only if ctx
// ends.
func (a *app) confirm(ctx context.Context, question, no string) error {
	fmt.Fprint(a.Stderr, question)
	answers := make(chan string, 1)
	go func() { // a read cannot be interrupted: it stays until the process ends
		line, _ := bufio.NewReader(a.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer != "y" && answer != "yes" {
			return failure.Exit(failure.CodeNo, errors.New(no))
		}
		return nil
	case <-ctx.Done():
		fmt.Fprintln(a.Stderr)
		return context.Cause(ctx)
	}
}
