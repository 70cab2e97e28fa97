package histories

import (
	"fmt"

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

// asked is the input of an operation.
type asked struct {
	verb  verb
	key   int   // index of a semaphore's permit; 0 for the mutex
	token int64 // token of the grant; zero before the answer, while the token is unknown
	frees bool  // the commit also releases
}

// told is the output of an operation.
type told struct {
	token   int64 // token of the grant
	n       int64 // counter that a read or a look showed
	refused bool  // the target refused a write
	unknown bool  // the operation may have been applied, or may still be applied
}

// key is the model of one lock.
type key struct {
	holder  int64 // the token of the client that believes that it holds the key; 0 if none does
	newest  int64 // the highest token granted
	grant   int64 // the current grant; 0 if it has ended
	counter int64 // number of commits applied
	seen    int64 // the highest token that the target has seen
}

// step returns the key after an operation, and whether the operation was possible.
//
// An operation of unknown outcome is always possible. If the model does not allow it to be
// applied, it changes nothing. It may also never be applied: it has no end time, so the
// checker can place it after the last look.
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

// without returns the key after a grant has ended.
func (k key) without(token int64) key {
	if k.grant == token {
		k.grant = 0
	}
	return k
}

// lockModel is the model of a mutex.
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

// semaphoreModel is the model of a semaphore.
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

// kind returns the kind of an operation and of its answer.
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

// describe returns an operation as text.
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
