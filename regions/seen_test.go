package regions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/regions"
)

// seen records the moves between Regions that a client reports.
type seen struct {
	mu     sync.Mutex
	events []leasehold.Event
	ended  bool // whether a move was reported with a context that had already ended
	log    bytes.Buffer
}

// config returns the configuration of a client that reports its moves to s.
func (s *seen) config() leasehold.Config {
	cfg := lab.Config()
	cfg.Logger = slog.New(slog.NewTextHandler(&s.log, nil))
	cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.Kind == leasehold.EventRegion {
			if s.events = append(s.events, e); ctx.Err() != nil {
				s.ended = true
			}
		}
	}
	return cfg
}

// lines returns the log lines that have the given level and contain the name of a Region.
func (s *seen) lines(level string) []string {
	var lines []string
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "level="+level) && strings.Contains(line, "region=") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestFailoverAndReturnToHomeRegionEmitOneEventEach(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		var s seen
		db, client := w.process(0, s.config())
		lock := w.Acquire(client, "a")
		lab.Elapse(time.Second)
		lab.Want(t, "Region at first", client.Stats().Region, names[0])
		lab.Want(t, "events at first", len(s.events), 0)
		w.darken(0, ways["no connection"])
		lab.Elapse(20 * time.Second)
		if len(s.events) != 1 || s.events[0].Err == nil || s.events[0].Region != names[1] || client.Stats().Region != names[1] {
			t.Errorf("outage at home: %s, %v", client.Stats().Region, s.events)
		}
		w.lighten(0)
		lab.Elapse(time.Minute)
		if len(s.events) != 2 || s.events[1].Err != nil || s.events[1].Region != names[0] || client.Stats().Region != db.Region() {
			t.Errorf("after the outage: %s, %v", client.Stats().Region, s.events)
		}
		lab.Want(t, "context of an event had already ended", s.ended, false)
		w.Release(lock)
		for level, want := range map[string]string{
			"WARN": "requests go to another Region\" region=us-east-2 table=locks err=",
			"INFO": "requests go to the home Region again\" region=us-east-1 table=locks",
		} {
			if lines := s.lines(level); len(lines) != 1 || !strings.Contains(lines[0], want) {
				t.Errorf("%s: %q", level, lines)
			}
		}
	})
}

// If no Region can be reached, requests come back to the home Region without probes.
func TestReturnHomeAfterFailureOfEveryRegionEmitsEvent(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		var s seen
		db, client := w.process(0, s.config())
		lock := w.Acquire(client, "a")
		for n := range names {
			w.darken(n, ways["no connection"])
		}
		for db.Region() == names[0] {
			lab.Elapse(time.Millisecond)
		}
		for db.Region() != names[0] {
			lab.Elapse(time.Millisecond)
		}
		w.lighten(0)
		lab.Elapse(10 * time.Second)
		if last := s.events[len(s.events)-1]; last.Region != names[0] || last.Err != nil {
			t.Errorf("last event: %s, %v", last.Region, last.Err)
		}
		lab.Want(t, "lines at level Info", len(s.lines("INFO")), 1)
		w.Release(lock)
	})
}

func TestWarningThatFailoverIsImpossibleIsLoggedOnlyOnce(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		w.mode = "EVENTUAL"
		var s seen
		_, client := w.process(0, s.config())
		for range 3 {
			w.Release(w.Acquire(client, "a"))
			lab.Elapse(time.Second)
		}
		lines := s.lines("WARN")
		if len(lines) != 1 || !strings.Contains(lines[0], "no failover to another Region") || !strings.Contains(lines[0], "it is no global table with multi-Region strong consistency") {
			t.Errorf("logged %q", lines)
		}
		lab.Want(t, "events", len(s.events), 0)
		lab.Want(t, "Region", client.Stats().Region, names[0])
	})
}

func TestTransactionIsNotSentForStronglyConsistentTable(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		_, client := w.process(0, lab.Config())
		lock := w.Acquire(client, "a")
		lab.Elapse(time.Second) // time in which the client learns that the table is strongly consistent
		ctx, refused := t.Context(), errors.New("ValidationException")
		cancelled := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{Code: aws.String("ValidationError")}}}
		_, read := lock.Read(ctx, nil)
		for name, err := range map[string]error{
			"Commit":                              lock.Commit(ctx, lab.Writes(lab.Note("n", "1"))),
			"Read":                                read,
			"GuardError":                          lock.GuardError(refused, 0),
			"GuardError of cancelled transaction": lock.GuardError(cancelled, 0),
			"CommitAndRelease":                    lock.CommitAndRelease(ctx, lab.Writes(lab.Note("n", "1"))),
		} {
			lab.WantAs[*leasehold.UnsupportedError](t, name, err)
			lab.WantMatch(t, name, fmt.Sprint(err), "^leasehold: table locks has no transactions, "+
				"as it is strongly consistent across Regions: have the target compare Lock.Token")
			if name == "GuardError" && !errors.Is(err, refused) {
				t.Errorf("%s hides %v", name, refused)
			}
		}
		lab.OK(t, lock.GuardError(nil, 0))
		for _, op := range []string{"TransactWriteItems", "TransactGetItems"} {
			lab.Want(t, "requests of "+op, w.count(names[0], op).Load(), 0)
		}
		w.WantReleased("a")
	})
}

func TestTransactionWaitsForReplyToDescribeTable(t *testing.T) {
	lab.Variants(t, map[string]string{"ready": "ACTIVE", "a replica is not ready": "CREATING"}, func(t *testing.T, ready string) {
		inRegions(t, func(t *testing.T, w *world) {
			w.status = ready
			for n := range names {
				w.darken(n, func(r *lab.Request) (*http.Response, error) {
					if r.Op != "DescribeTable" {
						return r.Send()
					}
					time.Sleep(2 * time.Second)
					return w.describe(n, false), nil
				})
			}
			_, client := w.process(0, lab.Config())
			lock := w.Acquire(client, "a")
			err := lock.Commit(t.Context(), lab.Writes(lab.Note("n", "1")))
			lab.WantAs[*leasehold.UnsupportedError](t, "commit", err)
			lab.Want(t, "transactions", w.count(names[0], "TransactWriteItems").Load(), 0)
			w.Release(lock)
		})
	})
}

func TestTransactionIsSentIfDescribeTableFails(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		for n := range names {
			w.darken(n, func(r *lab.Request) (*http.Response, error) {
				if r.Op == "DescribeTable" {
					return lab.Cut(r)
				}
				return r.Send()
			})
		}
		w.Work()
		_, client := w.process(0, lab.Config())
		lock := w.Acquire(client, "a")
		began := time.Now()
		lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note("n", "1"))), nil)
		lab.WantTook(t, "commit took", began, 0, 4*time.Second)
		w.Release(lock)
	})
}

func TestHoldThroughOutageOptionIsRejectedForSeveralRegions(t *testing.T) {
	db := regions.New(dynamodb.New(dynamodb.Options{Region: names[0]}), dynamodb.New(dynamodb.Options{Region: names[1]}))
	_, err := leasehold.New(db, leasehold.Config{Table: "locks", Layout: layout.AWSLabs{HoldThroughOutage: true}})
	lab.WantText(t, "new", err, "HoldThroughOutage of the layout, "+
		"and other Regions grant during an outage of one: leave it out")
}

func TestRegionChangesAreLoggedAtMostOncePerMinute(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		var s seen
		_, client := w.process(0, s.config())
		w.Release(w.Acquire(client, "a"))
		for i := range names {
			w.darken(i, ways["no connection"])
		}
		lab.WantErr(t, "Acquire", lab.ErrorOf(client.Acquire(w.Within(150*time.Second), "a")), context.DeadlineExceeded)
		lab.Elapse(10 * time.Second)
		moves := 0
		for _, line := range s.lines("WARN") {
			if strings.Contains(line, "requests go to another Region") {
				moves++
			}
		}
		if moves < 1 || moves > 3 || len(s.events) <= moves {
			t.Errorf("%d lines for %d moves", moves, len(s.events))
		}
	})
}
