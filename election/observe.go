package election

import (
	"context"
	"iter"
)

// Observe yields the current leader and each new leader. It yields the zero Leader when
// there is no leader or the leader is found dead. The sequence ends without an error when
// ctx ends. Observe uses leasehold.Client.Watch, which determines when a holder is dead and
// when to return an error. A leader that was found dead and then renews is yielded again.
//
// Observe yields a change after at most one pause between two reads. The longest pause is
// 1.5 x Config.PollMax. While DynamoDB does not answer, Observe yields nothing, although the
// leader may have changed. With the defaults Observe reads about four times a second when a
// term is new, and twice a second after ten seconds.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var last *seat
		for seen, err := range e.locks.Watch(ctx, e.key) {
			if err != nil {
				yield(Leader{}, err)
				return
			}
			var now seat
			if seen.Holder != nil && !seen.Dead {
				now = seat{true, leaderOf(*seen.Holder)}
			}
			again := last != nil && now == *last && (!now.taken || !seen.NewGrant)
			last = &now
			if !again && !yield(now.leader, nil) {
				return
			}
		}
	}
}

// seat is the state of an election as an observer sees it.
type seat struct {
	taken  bool
	leader Leader // zero if nothing is known about the leader
}
