package election

import (
	"context"
	"iter"

	"github.com/leasehold-go/leasehold"
)

// Observe yields the leader now and at every change, the zero Leader when the
// seat is empty or its holder is found dead, until ctx ends: then the sequence
// just ends. It goes by leasehold.Client.Watch, which says when a holder is dead
// and what is an error. A leader that was found dead and renews after all is
// yielded again.
//
// A change shows within one longest poll, 1.5 x Config.PollMax. While DynamoDB
// does not answer nothing is yielded: what was yielded last may have changed.
// With the defaults it looks about four times a second when a term is new, and twice
// from ten seconds on.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var last *seat
		for seen, err := range e.locks.Watch(ctx, e.key) {
			if err != nil {
				yield(Leader{}, err)
				return
			}
			now := seatOf(seen)
			again := last != nil && now == *last && (!now.taken || !seen.NewGrant)
			last = &now
			if !again && !yield(now.leader, nil) {
				return
			}
		}
	}
}

// seat is what observers are told of.
type seat struct {
	taken  bool
	leader Leader // of whom nothing may be known
}

func seatOf(seen leasehold.Sighting) seat {
	if seen.Holder == nil || seen.Dead {
		return seat{}
	}
	return seat{true, leaderOf(*seen.Holder)}
}
