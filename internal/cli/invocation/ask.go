package invocation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
)

// CanAsk reports whether there is a terminal to ask at.
func (in *Invocation) CanAsk() bool { return say.IsTerminal(in.Stdin) && in.Stderr.Terminal }

// Confirm asks a yes-or-no question at the terminal. Unless the answer is yes, it
// returns the error that ends the command and says no. It returns early only if ctx
// ends.
func (in *Invocation) Confirm(ctx context.Context, question, no string) error {
	fmt.Fprint(in.Stderr, question)
	answers := make(chan string, 1)
	go func() { // a read cannot be interrupted: it stays until the process ends
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
