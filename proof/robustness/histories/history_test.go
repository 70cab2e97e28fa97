package histories

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// history is a record of operations and their results.
type history struct {
	began time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
}

// call is an operation that has begun and not ended.
type call struct {
	by int
	in asked
	at time.Duration
}

func (h *history) begin(by int, in asked) call { return call{by, in, time.Since(h.began)} }

// end adds an operation and its result to the history.
func (h *history) end(c call, out told) {
	op := porcupine.Operation{ClientId: c.by, Input: c.in, Call: int64(c.at), Output: out, Return: int64(time.Since(h.began))}
	if out.unknown {
		op.Return = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
}

// operations returns the operations of the history, sorted by their start times.
func (h *history) operations() []porcupine.Operation {
	h.mu.Lock()
	ops := slices.Clone(h.ops)
	h.mu.Unlock()
	slices.SortFunc(ops, func(a, b porcupine.Operation) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Return, b.Return), cmp.Compare(a.ClientId, b.ClientId))
	})
	return ops
}

// undecided is the checker's time limit for one history. The checker usually takes only
// milliseconds, because histories are short.
const undecided = 5 * time.Minute

// problem returns an error text if the operations are impossible according to the model,
// and "" otherwise. The text contains the path of a file that visualizes the operations.
func problem(model porcupine.Model, ops []porcupine.Operation) string {
	if porcupine.CheckOperationsTimeout(model, ops, undecided) == porcupine.Ok {
		return ""
	}
	result, info := porcupine.CheckOperationsVerbose(model, ops, undecided)
	return fmt.Sprintf("no lock could have said this (%s)\n\t%s\nto look at it: %s", result, strings.Join(lines(ops), "\n\t"), visualized(model, info))
}

func visualized(model porcupine.Model, info porcupine.LinearizationInfo) string {
	dir, err := os.MkdirTemp("", "leasehold-history-")
	if err != nil {
		return err.Error()
	}
	path := filepath.Join(dir, "history.html")
	if err := porcupine.VisualizePath(model, info, path); err != nil {
		return err.Error()
	}
	return path
}

// lines returns one line of text for each operation.
func lines(ops []porcupine.Operation) []string {
	var lines []string
	for _, op := range ops {
		until := fmt.Sprint(time.Duration(op.Return))
		if op.Return == math.MaxInt64 {
			until = "..."
		}
		lines = append(lines, fmt.Sprintf("%v to %s, %d: %s", time.Duration(op.Call), until, op.ClientId, describe(op.Input.(asked), op.Output.(told))))
	}
	return lines
}
