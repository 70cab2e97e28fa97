package election

import (
	"context"
	"iter"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/recipe"
)

// seat is what observers are told of, and what tells one term from the next
// though leader and value are the same.
type seat struct {
	grant  string
	leader Leader
}

// Observe yields the leader now and at every change, the zero Leader when the
// seat is empty or its holder is found dead, until ctx ends: then the sequence
// just ends.
//
// A holder is dead once its record has stood still for its lease, by this
// process's monotonic clock; with Config.SharedLease it is the holder's session
// that is watched, and where records say when they expire, that time. A change
// shows within one longest poll, twice Config.PollMax; changes that follow each
// other faster may be seen as one. One that was found dead and renews after
// all, because clocks run apart, is yielded again.
//
// Requests that DynamoDB does not answer are repeated for as long as it takes,
// and meanwhile nothing is yielded: what was yielded last may have changed. That
// nothing is seen is told by the client, at once and then once a minute: a
// leasehold.EventWaitError and a warning in its log. An error that stays - no such table, access
// denied, a record that is none of the layout (*leasehold.RecordError), a
// closed client - is yielded with the zero Leader and ends the sequence. One
// read per look, two of a leader with a shared lease: with the defaults about
// two looks a second.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var last *seat
		for sight, err := range recipe.Of(e.locks).Watch(ctx, protocol.Key{Partition: e.key}) {
			if err != nil {
				yield(Leader{}, err)
				return
			}
			now := seatOf(sight)
			if last != nil && now == *last {
				continue
			}
			last = &now
			if !yield(now.leader, nil) {
				return
			}
		}
	}
}

func seatOf(sight recipe.Sight) seat {
	r := sight.Record
	if r == nil || sight.Dead {
		return seat{}
	}
	return seat{sight.Grant, Leader{Owner: r.Owner, Value: string(r.Data), Token: r.Token}}
}
