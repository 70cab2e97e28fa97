package histories

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// verb is what an operation does.
type verb string

const (
	acquire     verb = "acquire"
	acquireRead verb = "acquire to read"
	end         verb = "end of trust"
	release     verb = "release"
	commit      verb = "commit"
	read        verb = "read"
	write       verb = "write"
	resize      verb = "resize"
	look        verb = "look"
)

// asked is the input of an operation.
type asked struct {
	verb  verb
	key   int   // which permit of a semaphore; 0: the lock
	token int64 // 0: not known before the answer
	n     int64 // of resize
	frees bool  // a commit that releases
}

// told is its output.
type told struct {
	token   int64 // granted
	n       int64 // what a read or a look showed
	refused bool  // a write, by its target
	unknown bool  // it may have landed, or may yet
}

// key is one lock, as it ought to be.
type key struct {
	writer  int64   // the token of who believes that nobody else does
	readers []int64 // the tokens of who believe that no writer does
	newest  int64   // the highest token granted
	grant   int64   // the writer's grant that stands; 0: none
	grants  []int64 // the readers' grants that stand
	counter int64   // what commits have added
	seen    int64   // the highest token that the target has seen
}

func (k key) equal(o key) bool {
	return k.writer == o.writer && k.newest == o.newest && k.grant == o.grant && k.counter == o.counter &&
		k.seen == o.seen && slices.Equal(k.readers, o.readers) && slices.Equal(k.grants, o.grants)
}

// stands reports whether a commit of the grant may land.
func (k key) stands(token int64) bool {
	return k.grant == token || slices.Contains(k.grants, token)
}

func with(tokens []int64, token int64) []int64 {
	tokens = append(slices.Clone(tokens), token)
	slices.Sort(tokens)
	return tokens
}

func without(tokens []int64, token int64) []int64 {
	return slices.DeleteFunc(slices.Clone(tokens), func(t int64) bool { return t == token })
}

// step is the key after an operation, and whether it could have taken place.
//
// An operation whose outcome is unknown always can: where it finds that it must
// not land it does nothing. It never has to land, since its time does not end: it
// can come after the last look.
func (k key) step(in asked, out told) (bool, key) {
	switch in.verb {
	case acquire:
		if k.writer != 0 || len(k.readers) > 0 || out.token <= k.newest {
			return false, k
		}
		k.writer, k.newest = out.token, out.token
		k.grant, k.grants = out.token, nil
	case acquireRead:
		if k.writer != 0 || out.token <= k.newest {
			return false, k
		}
		k.readers, k.newest = with(k.readers, out.token), out.token
		k.grant, k.grants = 0, with(k.grants, out.token)
	case end:
		if k.writer != in.token && !slices.Contains(k.readers, in.token) {
			return false, k
		}
		if k.writer == in.token {
			k.writer = 0
		}
		k.readers = without(k.readers, in.token)
	case release:
		k = k.without(in.token)
	case commit:
		if !k.stands(in.token) {
			return out.unknown, k
		}
		k.counter++
		if in.frees {
			k = k.without(in.token)
		}
	case read:
		return k.stands(in.token) && k.counter == out.n, k
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

// without is the key once a grant stands no longer.
func (k key) without(token int64) key {
	if k.grant == token {
		k.grant = 0
	}
	k.grants = without(k.grants, token)
	return k
}

// lockModel is of a mutex and of a read/write lock: a mutex has writers alone.
var lockModel = porcupine.Model{
	Init: func() any { return key{} },
	Step: func(state, in, out any) (bool, any) {
		ok, k := state.(key).step(in.(asked), out.(told))
		return ok, k
	},
	Equal:             func(a, b any) bool { return a.(key).equal(b.(key)) },
	DescribeOperation: func(in, out any) string { return describe(in.(asked), out.(told)) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

// permits is a semaphore.
type permits struct {
	n    int64
	keys [mostPermits]key
}

const mostPermits = 4

// semaphoreModel is of a semaphore that has n permits at first.
func semaphoreModel(n int64) porcupine.Model {
	m := lockModel
	m.Init = func() any { return permits{n: n} }
	m.Step = func(state, in, out any) (bool, any) {
		s, i := state.(permits), in.(asked)
		switch {
		case i.verb == resize:
			s.n = i.n
			return true, s
		case i.verb == acquire && int64(i.key) >= s.n:
			return false, s
		}
		ok, k := s.keys[i.key].step(i, out.(told))
		s.keys[i.key] = k
		return ok, s
	}
	m.Equal = func(a, b any) bool {
		x, y := a.(permits), b.(permits)
		return x.n == y.n && slices.EqualFunc(x.keys[:], y.keys[:], key.equal)
	}
	return m
}

// kind is what sort of operation one was, and of answer.
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

// describe spells an operation.
func describe(in asked, out told) string {
	s := kind(in, out)
	switch in.verb {
	case acquire, acquireRead:
		return fmt.Sprintf("%s: key %d, token %d", s, in.key, out.token)
	case resize:
		return fmt.Sprintf("%s: %d", s, in.n)
	case look:
		return fmt.Sprintf("%s: key %d shows %d", s, in.key, out.n)
	case read:
		return fmt.Sprintf("%s: key %d, token %d, shows %d", s, in.key, in.token, out.n)
	default:
		return fmt.Sprintf("%s: key %d, token %d", s, in.key, in.token)
	}
}
