package invocation

import (
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// eventRequest is a request, with -v.
const eventRequest = "request"

// logRequests tells of each request to a store.
func (in *Invocation) logRequests(s *store.Store) func(requests.Request) {
	log := requests.NewLog(s.Proto.Schema())
	return func(r requests.Request) {
		entry := log.Entry(r, s.Server())
		e := say.NewEvent(eventRequest, in.Now())
		e.Operation, e.Attempt, e.RequestID, e.Units, e.TookMs, e.Outcome = entry.Operation, entry.Attempt, entry.ID, entry.Units, say.Millis(entry.Took), entry.Outcome
		switch len(entry.Keys) {
		case 0:
		case 1:
			e.Key, e.SortKey = entry.Keys[0].Partition, entry.Keys[0].Sort
		default:
			for _, k := range entry.Keys {
				e.Keys = append(e.Keys, say.Key{Key: k.Partition, SortKey: k.Sort})
			}
		}
		in.Say.Tell(e, "%s", entry.Line())
	}
}
