package aws

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// clocked is a DynamoDB server with its own clock. It refuses a request whose signature
// time differs too much from this clock. Each answer contains the time of this clock.
type clocked struct {
	wire  *lab.Wire
	ahead atomic.Int64 // how far DynamoDB's clock is ahead of this machine's, in nanoseconds
}

func (c *clocked) Do(r *http.Request) (*http.Response, error) {
	const written = "20060102T150405Z"
	now := time.Now().UTC().Add(time.Duration(c.ahead.Load()))
	signed, err := time.Parse(written, r.Header.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	var res *http.Response
	switch window := 5 * time.Minute; {
	case now.Sub(signed) > window:
		res = reply(400, service+"InvalidSignatureException", fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - 5 min.)",
			signed.Format(written), now.Add(-window).Format(written), now.Format(written)))
	case signed.Sub(now) > window:
		res = reply(400, service+"InvalidSignatureException", fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + 5 min.)",
			signed.Format(written), now.Add(window).Format(written), now.Format(written)))
	default:
		if res, err = c.wire.Do(r); err != nil {
			return nil, err
		}
	}
	res.Header.Set("Date", now.Format(http.TimeFormat))
	return res, nil
}

func TestCallsSucceedDespiteWrongSystemClock(t *testing.T) {
	for _, ahead := range []time.Duration{20 * time.Minute, -20 * time.Minute, 72 * time.Hour} {
		for _, op := range operations {
			t.Run(fmt.Sprint(ahead, " ", op.name), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					server := &clocked{}
					s := newSceneOver(t, w, lab.Config(), func(wire *lab.Wire) dynamodb.HTTPClient {
						server.wire = wire
						return server
					})
					server.ahead.Store(int64(ahead)) // from now on, the server's clock differs from the clock of this machine
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if err := op.do(ctx, s); err != nil {
						t.Error(err)
					}
					lab.Elapse(25 * time.Second)
					for _, held := range s.c.Held() {
						if held.Err() != nil {
							t.Errorf("%v is lost: %v", held.Key(), held.Err())
						}
					}
					_ = s.c.Close(t.Context())
					_ = s.other.Close(t.Context())
				})
			})
		}
	}
}

func TestClientWithWrongClockIsGrantedItsFirstKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		server := &clocked{wire: w.Wire()}
		server.ahead.Store(int64(time.Hour))
		c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = server }), lab.Config())
		lock := lab.Must(c.TryAcquire(t.Context(), "job"))(t)
		w.Release(lock)
	})
}
