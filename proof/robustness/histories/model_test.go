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

// verb is a kind of operation.
type verb string

const (
	acquire verb = "acquire"
	end     verb = "end of trust"
	release verb = "release"
	commit  verb = "commit"
	read    verb = "read"
	write   verb = "write"
	look    verb = "look"
)

// asked contains the input of an operation.
type asked struct {
	verb  verb
	key   int   // index of the permit of a semaphore; 0 for a mutex
	token int64 // token of the grant; zero while the acquisition is in progress
	frees bool  // the operation is a commit that also releases the lock
}

// told contains the result of an operation.
type told struct {
	token   int64 // token of the grant
	n       int64 // value of the counter, if the operation read it
	refused bool  // the target refused the write because of its token
	unknown bool  // the operation may have been applied, or may still be applied
}

// key models the state of one lock.
type key struct {
	holder  int64 // token of the client that trusts its lock; 0 if no client does
	newest  int64 // highest token that has been granted
	grant   int64 // token of the current grant; 0 if the grant has ended
	counter int64 // number of commits that have been applied
	seen    int64 // highest token that the target of writes has seen
}

// step reports whether an operation is possible in this state, and returns the state afterwards. A
// commit of unknown outcome is always possible. Such a commit has no end time: if it was never
// applied, the checker can place it at the end of the history.
func (k key) step(in asked, out told) (bool, key) {
	switch in.verb {
	case acquire:
		if k.holder != 0 || out.token <= k.newest {
			return false, k
		}
		k.holder, k.newest, k.grant = out.token, out.token, out.token
	case end:
		if k.holder != in.token {
			return false, k
		}
		k.holder = 0
	case release:
		k = k.without(in.token)
	case commit:
		if k.grant != in.token {
			return out.unknown, k
		}
		k.counter++
		if in.frees {
			k = k.without(in.token)
		}
	case read:
		return k.grant == in.token && k.counter == out.n, k
	case write:
		if in.token > k.newest || out.refused != (in.token < k.seen) {
			return false, k
		}
		if !out.refused {
			k.seen = in.token
		}
	case look:
		return k.counter == out.n, k
	}
	return true, k
}

// The method "without" ends the grant with this token if it is current, and returns the new state.
func (k key) without(token int64) key {
	if k.grant == token {
		k.grant = 0
	}
	return k
}

// lockModel models a mutex.
var lockModel = porcupine.Model{
	Init: func() any { return key{} },
	Step: func(state, in, out any) (bool, any) {
		ok, k := state.(key).step(in.(asked), out.(told))
		return ok, k
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return describe(in.(asked), out.(told)) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

const permits = 2 // number of permits of a semaphore

// semaphoreModel models a semaphore.
func semaphoreModel() porcupine.Model {
	m := lockModel
	m.Init = func() any { return [permits]key{} }
	m.Step = func(state, in, out any) (bool, any) {
		s, i := state.([permits]key), in.(asked)
		ok, k := s[i.key].step(i, out.(told))
		s[i.key] = k
		return ok, s
	}
	return m
}

// kind returns a text for the kind of an operation and of its result, for example "write, refused".
func kind(in asked, out told) string {
	s := string(in.verb)
	if in.frees {
		s += " and release"
	}
	if out.unknown {
		s += ", unknown"
	}
	if out.refused {
		s += ", refused"
	}
	return s
}

// describe returns an operation and its result as text.
func describe(in asked, out told) string {
	s := kind(in, out)
	switch in.verb {
	case acquire:
		return fmt.Sprintf("%s: key %d, token %d", s, in.key, out.token)
	case look:
		return fmt.Sprintf("%s: key %d shows %d", s, in.key, out.n)
	case read:
		return fmt.Sprintf("%s: key %d, token %d, shows %d", s, in.key, in.token, out.n)
	default:
		return fmt.Sprintf("%s: key %d, token %d", s, in.key, in.token)
	}
}

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
	visualized, err := os.MkdirTemp("", "leasehold-history-")
	if err == nil {
		visualized = filepath.Join(visualized, "history.html")
		err = porcupine.VisualizePath(model, info, visualized)
	}
	if err != nil {
		visualized = err.Error()
	}
	return fmt.Sprintf("no correct lock returns these results (%s)\n\t%s\nvisualized in %s", result, strings.Join(lines(ops), "\n\t"), visualized)
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
