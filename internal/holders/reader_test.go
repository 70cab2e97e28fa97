package holders

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
)

// empty is an HTTP client that replaces the body of every reply by an empty JSON object.
type empty struct{ dynamodb.HTTPClient }

func (c empty) Do(r *http.Request) (*http.Response, error) {
	reply, err := c.HTTPClient.Do(r)
	if err != nil {
		return nil, err
	}
	_ = reply.Body.Close()
	reply.StatusCode, reply.Body, reply.ContentLength = http.StatusOK, io.NopCloser(strings.NewReader("{}")), 2
	reply.Header.Del("X-Amz-Crc32")
	return reply, nil
}

func TestReaderRejectsBatchReplyWithoutResponses(t *testing.T) {
	engine := localdynamo.New()
	defer engine.Close()
	proto := lab.Must(records.Of(layout.Native{}))(t)
	r := NewReader(engine.Client(func(o *dynamodb.Options) { o.HTTPClient = empty{o.HTTPClient} }), "locks", proto)
	found, err := r.ByKey(t.Context(), []protocol.Key{{Partition: "a"}, {Partition: "b"}, {Partition: "c"}})
	if foreign := (*attempts.ForeignError)(nil); !errors.As(err, &foreign) {
		t.Errorf("%v, %v", found, err)
	}
}

func TestReadIntervalStaysBetweenMinimumAndMaximum(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for left, want := range map[time.Duration]time.Duration{
		0:                 minReadInterval,
		10 * time.Second:  3 * time.Second,
		time.Hour:         maxReadInterval,
		98 * year:         maxReadInterval, // three times this duration overflows int64 and would be negative
		math.MaxInt64:     maxReadInterval,
		-time.Millisecond: minReadInterval,
	} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			lab.Want(t, "time between reads", readInterval(left), want)
		})
	}
}
