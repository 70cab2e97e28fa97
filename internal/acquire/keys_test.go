package acquire_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/layout"
)

func TestRoundTripEstimateFollowsReads(t *testing.T) {
	inWorldOf(t, layout.AWSLabs{}, func(t *testing.T, w *world) { // a waiter of this layout sends only reads
		w.client("a").one("job")
		c := w.client("b")
		if got := c.RoundTrip(); got != decide.FirstRoundTrip {
			t.Errorf("before the first reply %v", got)
		}
		const takes = 12 * time.Millisecond
		ctx, leave := context.WithCancel(t.Context())
		c.wire.fate = func(_ int, name string, deliver func()) error {
			deliver()
			if name == "get" {
				time.Sleep(takes)
				leave()
			}
			return nil
		}
		_, _ = c.One(ctx, c.want("job"))
		c.left()
		if got, want := c.RoundTrip(), decide.RoundTrip(decide.FirstRoundTrip, takes); got != want {
			t.Errorf("after one read %v, want %v", got, want)
		}
	})
}

func TestNoWaitErrorContainsWaitedTimeRoundedToTenthOfSecond(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		time.Sleep(time.Hour) // the client's clock has run for an hour when the call begins
		c, began := w.client("a"), time.Now()
		c.wire.fate = func(int, string, func()) error { return errReset }
		_, err := c.One(t.Context(), c.want("job", noWait))
		took := time.Since(began)
		rounded := took.Round(100 * time.Millisecond)
		if took == rounded || !strings.Contains(err.Error(), fmt.Sprintf("gave up after %v: ", rounded)) {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
