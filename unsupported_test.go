package leasehold_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestWhatALayoutCannotDoIsRefusedBeforeAnythingIsSent(t *testing.T) {
	attributes := leasehold.WithAttributes(map[string]types.AttributeValue{"reason": lab.Str("month end")})
	for _, c := range []struct {
		layout  layout.Layout
		feature string
		ask     leasehold.AcquireOption
	}{
		{layout.Native{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.AWSLabs{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.Dynamolock{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.DynamoDLM{NoSlots: true}, "sort key", leasehold.WithSortKey("1")},
		{layout.DyndbMutex{}, "sort key", leasehold.WithSortKey("eu")},
		{layout.PythonDynamoDBLock{}, "data", leasehold.WithData([]byte("x"))},
		{layout.PythonDynamoDBLock{}, "data", leasehold.WithInitialData([]byte("x"))},
		{layout.DynamoDLM{}, "data", leasehold.WithData([]byte("x"))},
		{layout.DyndbMutex{}, "data", leasehold.WithData([]byte("x"))},
		{layout.DynamoDLM{}, "attributes", attributes},
		{layout.DyndbMutex{}, "attributes", attributes},
		{layout.PythonDynamoDBLock{}, "KeepOnRelease", leasehold.KeepOnRelease()},
		{layout.DynamoDLM{}, "KeepOnRelease", leasehold.KeepOnRelease()},
	} {
		t.Run(c.layout.Name()+", "+c.feature, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				client, wire := w.Client(lab.ConfigOf("locks", c.layout))
				defer client.Close(t.Context())
				_, err := client.Acquire(t.Context(), "job", c.ask)
				var unsupported *leasehold.UnsupportedError
				if !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "locks", Layout: c.layout.Name(), Feature: c.feature}) ||
					!errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("acquire: %v", err)
				}
				err = client.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }, c.ask)
				if !errors.As(err, &unsupported) || !errors.Is(err, leasehold.ErrNotRun) {
					t.Errorf("do: %v", err)
				}
				if sent := wire.Sent(); len(sent) != 0 {
					t.Errorf("%d requests were sent", len(sent))
				}
			})
		})
	}
}

func TestRetentionIsRefusedWhereNoReleasedRecordCouldExpire(t *testing.T) {
	for _, l := range []layout.Layout{layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}} {
		cfg := lab.ConfigOf("locks", l)
		cfg.Retention = time.Hour
		var unsupported *leasehold.UnsupportedError
		if _, err := leasehold.New(lab.New(t).DB, cfg); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "locks", Layout: l.Name(), Feature: "Retention"}) {
			t.Errorf("%s: %v", l.Name(), err)
		}
	}
}
