package attempts

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Limit is the time limit of a request for which no shorter limit is given.
const Limit = 3 * time.Second

// Maximum numbers of items in one request (DynamoDB API reference, "TransactWriteItems" and
// "BatchGetItem").
const (
	MaxTransact = 100
	MaxBatchGet = 100
)

// DB is the part of a *dynamodb.Client that a Sender uses. The lock sends no other
// requests.
type DB interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	TransactGetItems(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Keys encodes the keys of a table.
type Keys interface {
	Key(protocol.Key) (protocol.Item, error)
	Schema() protocol.Schema
}

// Sender sends requests to one table, each of them once, and classifies the replies. It is
// safe for concurrent use.
type Sender struct {
	DB     DB
	Table  string
	Keys   Keys
	Chance func() float64 // returns a random number in [0, 1), so that clients do not retry at the same time
	Log    *slog.Logger

	Regions Regions // the DB if it sends requests to several Regions; otherwise nil
	// RegionNews is called after a request if RegionState.Changes has grown. It must not be
	// nil if Regions is set.
	RegionNews func(context.Context, RegionState)

	changes  atomic.Int64 // value of RegionState.Changes at the last call of RegionNews
	accepted atomic.Bool  // true once DynamoDB has accepted a request of this client
}

// Regions is a DB that sends each request to one of several Regions. Package regions
// implements it.
type Regions interface {
	State(table string) RegionState
	CheckTransactions(ctx context.Context, table string) error // returns an error if the table is known to have no transactions
}

// RegionState describes where the requests to a table go, and what the client knows about
// the table.
type RegionState struct {
	Region  string // Region that requests are sent to
	Changes int    // number of times that Region has changed; 1 if the client knows that Region never changes
	Left    error  // reason for leaving the previous Region; nil in the home Region
	Stays   string // reason why all requests go to the home Region; empty if they may go to another
}

// noteRegion calls RegionNews if RegionState.Changes has grown since the last call of
// RegionNews.
func (s *Sender) noteRegion(ctx context.Context) {
	if s.Regions == nil {
		return
	}
	now := s.Regions.State(s.Table)
	if before := s.changes.Load(); before < int64(now.Changes) && s.changes.CompareAndSwap(before, int64(now.Changes)) {
		s.RegionNews(context.WithoutCancel(ctx), now)
	}
}

// CheckTransactions returns an error if the table is known to have no transactions. While
// the Regions of the table are being asked, it waits for their answer.
func (s *Sender) CheckTransactions(ctx context.Context) error {
	if s.Regions == nil {
		return nil
	}
	return s.Regions.CheckTransactions(ctx, s.Table)
}

// Reply is the answer to one request.
type Reply struct {
	decide.Reply
	Item protocol.Item // the item that an applied write or a read returned; nil if there is none
	Err  error
}

// Once turns the SDK's retries off: a write that is sent again must be a new attempt, with
// a new version and a condition that names the earlier attempts.
func Once(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	Bounded(o)
}

// Write sends w once. If the caller must know the outcome, pass a ctx that does not end
// with the caller's own context.
func (s *Sender) Write(ctx context.Context, w *protocol.Write, within time.Duration) Reply {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var r Reply
	if w.IsDelete() {
		_, r.Err = s.DB.DeleteItem(ctx, w.DeleteItem(s.Table), Once)
	} else {
		var out *dynamodb.UpdateItemOutput
		if out, r.Err = s.DB.UpdateItem(ctx, w.UpdateItem(s.Table), Once); r.Err == nil {
			if r.Item = out.Attributes; r.Item == nil {
				r.Err = missing(out.ResultMetadata, "item that was written")
			}
		}
	}
	s.noteRegion(ctx)
	r.Reply = decide.Classify(r.Err)
	r.Cause, r.Err = s.CauseOf(r.Cause, r.Err)
	s.failed(ctx, r.Cause, r.Err)
	return r
}

// Commit sends a caller's transaction once, with the given options. The request ends with
// ctx.
func (s *Sender) Commit(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) error {
	_, err := s.DB.TransactWriteItems(ctx, in, append(options, Once)...)
	return err
}

func (s *Sender) failed(ctx context.Context, cause decide.Cause, err error) {
	if err != nil && cause != decide.ConditionFailed {
		s.Log.LogAttrs(ctx, slog.LevelDebug, "leasehold: request failed", slog.Any("err", err))
	}
}

// CauseOf corrects the cause of an error, depending on whether DynamoDB has ever accepted a
// request of this client.
func (s *Sender) CauseOf(cause decide.Cause, err error) (decide.Cause, error) {
	if !s.accepted.Load() {
		if !decide.Accepted(err) {
			return cause.After(false), err
		}
		s.accepted.Store(true)
	}
	if without := (*UnsignedError)(nil); cause == decide.Unidentified && decide.NotSigned(err) && !errors.As(err, &without) {
		err = &UnsignedError{err}
	}
	return cause.After(true), err
}
