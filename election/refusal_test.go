package election_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// refusing is a fault that refuses every request.
func refusing(code string) lab.Fault {
	return lab.Answer(func() *http.Response { return lab.Refusal(400, code) })
}

func TestLeadCampaignsAgainIfTermWasLostByRefusedRenewals(t *testing.T) {
	for _, code := range []string{"ExpiredTokenException", "UnrecognizedClientException", "AccessDeniedException"} {
		t.Run(code, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				e, c, wire := elects(w, lab.Config())
				terms := make(chan int64, 10)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- e.Lead(ctx, "", func(ctx context.Context, term *leasehold.Lock) error {
						terms <- term.Token()
						<-ctx.Done()
						return nil
					})
				}()
				first := <-terms
				wire.SetFault(refusing(code))
				lab.Elapse(2 * time.Minute) // long enough to lose the term and to begin the next campaign
				select {
				case err := <-ended:
					t.Fatalf("it ended: %v", err)
				default:
				}
				wire.SetFault(nil)
				lab.Elapse(5 * time.Second)
				select {
				case next := <-terms:
					if next <= first {
						t.Errorf("term %d after %d", next, first)
					}
				default:
					t.Error("it does not lead again")
				}
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestLeadReturnsErrorIfFirstCampaignIsDenied(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, c, wire := elects(w, lab.Config())
		other := lab.Must(election.New(c, "other"))(t)
		lab.Must(other.Campaign(t.Context(), ""))(t)
		wire.SetFault(refusing("AccessDeniedException"))
		var op *leasehold.OpError
		if err := e.Lead(t.Context(), "", func(context.Context, *leasehold.Lock) error { return nil }); !errors.As(err, &op) {
			t.Error(err)
		}
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}
