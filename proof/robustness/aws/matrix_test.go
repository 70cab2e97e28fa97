package aws

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// patience is the time limit of a call while AWS, the network or the credentials fail.
const patience = 5 * time.Second

// meets reports whether the operation sends a request that the simulated failure x affects.
func (op operation) meets(x trouble) bool {
	return !x.writes || !op.reads || op.transacts
}

func TestCallsDuringFaultReturnErrorWithAdvice(t *testing.T) {
	var seen results
	eachCell(t, func(t *testing.T, s *scene, x trouble, op operation) {
		s.begin(x)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err := op.do(ctx, s)
		took := time.Since(began)
		if !op.meets(x) {
			lab.WantErr(t, "a call that the failure does not affect", err, nil)
			return
		}
		for _, key := range op.grants {
			if item := s.Item(key); item != nil && key != "passed" {
				t.Errorf("the table has a record of %s", key)
			}
		}
		seen.note(x, op, err)
		switch {
		case err == nil:
			t.Fatal("no error")
		case !x.passes && took > time.Second, x.passes && took < patience, took > patience+op.grace:
			t.Errorf("the call took %v", took)
		case op.watches && x.passes:
			lab.WantErr(t, "the call", err, errNothing)
			return
		}
		x.check(t, op, err)
		s.recover(t, op)
	})
	if want := len(lab.Leases()) * cells(); seen.cells < want {
		t.Logf("%d of %d cells were run: the page is not compared", seen.cells, want)
		return
	}
	seen.compare(t)
}

// cells returns the number of pairs of an operation and a simulated failure that affects
// this operation.
func cells() (n int) {
	for _, x := range troubles {
		for _, op := range operations {
			if op.meets(x) {
				n++
			}
		}
	}
	return n
}

// check fails the test unless err is the error that the documentation promises for this
// operation during the simulated failure x.
func (x trouble) check(t *testing.T, op operation, err error) {
	t.Helper()
	var failed *leasehold.OpError
	var commit *leasehold.CommitError
	own := x.cancels && op.commits
	if own && !errors.As(err, &commit) || !own && !errors.As(err, &failed) {
		t.Errorf("error of type %T: %v", err, err)
	}
	if failed != nil && failed.Op != op.op {
		t.Errorf("operation %q, want %q", failed.Op, op.op)
	}
	unknown := errors.Is(err, leasehold.ErrUnknownOutcome)
	must := x.passes && x.silent && op.writes
	if may := must || x.passes && op.hasty; unknown && !may || !unknown && must {
		t.Errorf("unknown outcome %v: %v", unknown, err)
	}
	if x.passes && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error does not match the end of the context: %v", err)
	}
	for _, target := range x.is {
		if !errors.Is(err, target) && !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("the error does not match %v: %v", target, err)
		}
	}
	advice := x.advice
	switch {
	case own: // leasehold gives no advice about the caller's own writes, which failed here
		advice = ""
	case errors.Is(err, leasehold.ErrUnknownOutcome) && !strings.Contains(err.Error(), advice):
		advice = "no answer has settled it: look at what is there"
	}
	parts := []string{"leasehold: ", advice, " table locks"}
	if op.name != "Client.Close" { // Close closes several locks, and its error names only one of them
		parts = append(parts, op.op, op.key)
	}
	lab.WantText(t, op.name, err, parts...)
	if strings.Contains(err.Error(), "\n") && !op.joins {
		t.Errorf("the error has several lines: %q", err)
	}
	var api smithy.APIError
	if !x.passes && !own && !errors.As(err, &api) {
		t.Errorf("the error does not wrap the SDK's error: %v", err)
	}
}

// recover ends the simulated failure, repeats the operation, and then waits for longer than a
// lease. It fails the test if the operation still fails, or if a held lock is lost meanwhile.
func (s *scene) recover(t *testing.T, op operation) {
	t.Helper()
	s.end()
	lab.Elapse(3 * time.Second) // wait until all requests in flight have ended
	again := op.do
	if op.again != nil {
		again = op.again
	}
	lab.OK(t, again(t.Context(), s))
	lab.Elapse(25 * time.Second) // wait longer than a lease
	if !strings.Contains(op.ends, "job") && s.lock.Err() != nil {
		t.Errorf("one lease later, a held lock is lost: %v", s.lock.Err())
	}
	if !strings.Contains(op.ends, "left") && s.group.Err() != nil {
		t.Errorf("one lease later, held locks are lost: %v", s.group.Err())
	}
}

func TestCallRetriesUntilTemporaryFaultIsOver(t *testing.T) {
	const lasts = 2 * time.Second
	eachCell(t, func(t *testing.T, s *scene, x trouble, op operation) {
		if !x.passes || !op.meets(x) {
			return
		}
		s.begin(x)
		time.AfterFunc(lasts, s.end)
		began := time.Now()
		if err := op.do(t.Context(), s); err != nil {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		lab.WantTook(t, fmt.Sprintf("in a failure of %v, the call took", lasts), began, lasts, lasts+5*time.Second)
		lab.Elapse(25 * time.Second) // wait longer than a lease
		for _, held := range s.c.Held() {
			lab.WantErr(t, "a held lock", held.Err(), nil)
		}
	})
}

// leftOut reports whether the test skips case i. Under the race detector, only every eighth
// case runs. make check runs all cases without the race detector.
func leftOut(i int) bool { return lab.Race && i%8 != 0 }

// eachCell runs a test for every pair of an operation and a simulated failure, once for
// each way to renew locks.
func eachCell(t *testing.T, test func(t *testing.T, s *scene, x trouble, op operation)) {
	lab.Variants(t, lab.Leases(), func(t *testing.T, config leasehold.Config) {
		for i, x := range troubles {
			t.Run(x.name, func(t *testing.T) {
				for j, op := range operations {
					if leftOut(i + j) {
						continue
					}
					t.Run(op.name, func(t *testing.T) {
						lab.InBubble(t, func(t *testing.T, w *lab.World) {
							s := newScene(t, w, config)
							test(t, s, x, op)
							s.end()
							_ = s.c.Close(t.Context())
							_ = s.other.Close(t.Context())
						})
					})
				}
			})
		}
	})
}
