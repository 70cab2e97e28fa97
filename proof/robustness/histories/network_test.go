package histories

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// drawn returns a random source for one random decision. The values after the seed identify the
// decision. The source depends only on the seed and on these values, and not on the order in
// which goroutines run.
func drawn(seed uint64, what ...any) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// asks returns a text that identifies a request. The text contains only parts that are not
// random, such as the operation, the keys and the name of the worker.
func asks(r *lab.Request) string {
	who, _ := r.Context().Value(workerKey{}).(string)
	return fmt.Sprintf("%s of %s, in %d bytes, commits %t, for %s", r.Op, strings.Join(r.Keys(), ", "), len(r.Body), r.Commits(), who)
}

// Time is divided into cycles, and each cycle has one slot for each process. The requests of
// a process reach the table only in the slots of that process. So requests of two processes
// never arrive at the same instant.
const (
	slot  = 100 * time.Nanosecond
	cycle = 10 * slot
)

// The method "after" sleeps for d, and then until a random instant in the process's next slot.
func (p *process) after(d time.Duration, r *rand.Rand) {
	until := time.Now().Add(d).Truncate(cycle).Add(cycle + time.Duration(p.id)*slot + upTo(r, slot))
	time.Sleep(time.Until(until))
}

// network simulates the network for a request of the process: a random decision determines
// whether the request or its reply is lost, late or refused.
func (p *process) network(r *lab.Request) (*http.Response, error) {
	what := asks(r)
	p.mu.Lock()
	n := p.asked[what]
	p.asked[what]++
	p.mu.Unlock()
	rng := drawn(p.seed, "fate", p.id, what, n)
	late := upTo(rng, lease*3/2)
	there, back := upTo(rng, 2*time.Millisecond), upTo(rng, 2*time.Millisecond)
	apply := r.Send
	refuse := func(status int, code string) func() (*http.Response, error) {
		return func() (*http.Response, error) { return lab.Refusal(status, code), nil }
	}
	hang := func() (*http.Response, error) { return lab.Cut(r) }
	switch f := rng.IntN(100); {
	case p.isDead():
		return hang()
	case f < 60:
		return p.pass(r, rng, there, back, apply)
	case f < 66: // the network loses the request
		return hang()
	case f < 74: // the table applies the request, but the network loses the reply
		_, _ = p.pass(r, rng, there, back, apply)
		return hang()
	case f < 76:
		_, _ = p.pass(r, rng, there, back, apply)
		return nil, lab.ErrReset
	case f < 84: // the request arrives late, perhaps after its caller has stopped waiting
		return p.pass(r, rng, late, back, apply)
	case f < 87: // the reply arrives late
		return p.pass(r, rng, there, late, apply)
	case f < 92: // the network delivers the request twice
		go func() {
			p.after(late, drawn(p.seed, "copy", late))
			_, _ = r.Send()
		}()
		return p.pass(r, rng, there, back, apply)
	case f < 94:
		return p.pass(r, rng, there, back, refuse(400, "ThrottlingException"))
	case f < 96:
		return p.pass(r, rng, there, back, func() (*http.Response, error) { return lab.Conflict(r.Call), nil })
	case f < 97:
		return p.pass(r, rng, there, back, refuse(500, "InternalServerError"))
	case f < 98: // the server refuses the credentials of this request, but accepts the next request
		codes := []string{"ExpiredTokenException", "UnrecognizedClientException", "AccessDeniedException"}
		return p.pass(r, rng, there, back, refuse(400, codes[rng.IntN(len(codes))]))
	default: // the server applies the request, but answers with an error
		_, _ = p.pass(r, rng, there, back, apply)
		return lab.Refusal(503, "ServiceUnavailable"), nil
	}
}

// pass delivers a request, and delivers its reply if the caller still waits. While the
// process is paused, it neither sends requests nor receives replies.
func (p *process) pass(r *lab.Request, rng *rand.Rand, there, back time.Duration, answer func() (*http.Response, error)) (*http.Response, error) {
	type reply struct {
		res *http.Response
		err error
	}
	replied := make(chan reply, 1)
	go func() {
		p.after(there+p.standsStill(), rng)
		res, err := answer()
		p.after(back, rng)
		if d := p.standsStill(); d > 0 {
			p.after(d, rng)
		}
		replied <- reply{res, err}
	}()
	select {
	case r := <-replied:
		return r.res, r.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

type workerKey struct{}

// onBehalf returns a context that contains the name of the worker that sends a request.
func onBehalf(who string) context.Context {
	return context.WithValue(context.Background(), workerKey{}, who)
}
