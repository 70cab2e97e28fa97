package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// ask asks a yes-or-no question at the terminal. It returns early only if ctx
// ends.
func (a *app) ask(ctx context.Context, question string) (yes bool, err error) {
	fmt.Fprint(a.Stderr, question)
	answers := make(chan string, 1)
	go func() { // a read cannot be interrupted: it stays until the process ends
		line, _ := bufio.NewReader(a.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		return answer == "y" || answer == "yes", nil
	case <-ctx.Done():
		fmt.Fprintln(a.Stderr)
		return false, context.Cause(ctx)
	}
}
