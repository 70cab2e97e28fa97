package attempts

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Limit is how long a client waits for the answer to a request if no shorter time is given.
const Limit = 3 * time.Second

// Maximum numbers of items in one request (DynamoDB API reference, "TransactWriteItems" and
// "BatchGetItem").
const (
	MaxTransact = 100
	MaxBatchGet = 100
)

// DB contains the methods of a *dynamodb.Client that a Sender uses. A leasehold client
// sends no other kinds of requests.
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

// Keys encodes the keys of the items in a table.
type Keys interface {
	Key(protocol.Key) (protocol.Item, error)
	Schema() protocol.Schema
}

// Sender sends requests to one table, without the SDK's retries, and classifies the
// replies. It is safe for concurrent use.
type Sender struct {
	DB     DB
	Table  string
	Keys   Keys
	Chance func() float64 // returns a random number in [0, 1), so that clients do not retry at the same time
	Log    *slog.Logger

	// The Sender calls RegionNews after a request if RegionState.Changes has increased.
	// RegionNews must not be nil if DB implements Regions.
	RegionNews func(context.Context, RegionState)

	changes  atomic.Int64 // value of RegionState.Changes at the last call of RegionNews
	accepted atomic.Bool  // true once DynamoDB has accepted a request of this client
}

// Regions is implemented by a DB that sends each request to one of several Regions. Package
// regions has this DB.
type Regions interface {
	State(table string) RegionState
	CheckTransactions(ctx context.Context, table string) error // returns an error if the client knows that transactions do not work on the table
}

// RegionState contains the Region to which a client sends the requests for a table, and the reason
// for this choice.
type RegionState struct {
	Region  string // the Region to which the client now sends requests
	Changes int    // grows with each change of Region; 1 if the client has found out that requests stay in the home Region
	Left    error  // reason why the client has left the previous Region; nil if the client has never left the home Region, or the home Region serves again
	Stays   string // reason why all requests go to the home Region; empty if they may go to another Region
}

// noteRegion calls RegionNews if RegionState.Changes has increased since the last call of
// RegionNews.
func (s *Sender) noteRegion(ctx context.Context) {
	regions, ok := s.DB.(Regions)
	if !ok {
		return
	}
	now := regions.State(s.Table)
	if before := s.changes.Load(); before < int64(now.Changes) && s.changes.CompareAndSwap(before, int64(now.Changes)) {
		s.RegionNews(context.WithoutCancel(ctx), now)
	}
}

// CheckTransactions returns an error if the client knows that transactions do not work on
// the table. While the client is finding out the Regions of the table, CheckTransactions
// waits for the result.
func (s *Sender) CheckTransactions(ctx context.Context) error {
	if regions, ok := s.DB.(Regions); ok {
		return regions.CheckTransactions(ctx, s.Table)
	}
	return nil
}

// Once makes the SDK send a request only once, without retries, and applies Bounded. The package
// comment explains why the client itself sends retries.
func Once(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	Bounded(o)
}

// Write sends w once, and waits for the reply for at most the duration "within". To learn the
// outcome even after the caller has stopped waiting, pass a ctx that outlives the caller's context.
func (s *Sender) Write(ctx context.Context, w *protocol.Write, within time.Duration) decide.Reply {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var written protocol.Item
	var err error
	if w.IsDelete() {
		_, err = s.DB.DeleteItem(ctx, w.DeleteItem(s.Table), Once)
	} else {
		var out *dynamodb.UpdateItemOutput
		if out, err = s.DB.UpdateItem(ctx, w.UpdateItem(s.Table), Once); err == nil {
			if written = out.Attributes; written == nil {
				err = missing(out.ResultMetadata, "item that was written")
			}
		}
	}
	s.noteRegion(ctx)
	r := decide.Classify(err)
	if err == nil {
		r.Item = written
	}
	r.Cause, r.Err = s.causeOf(r.Cause, err)
	s.failed(ctx, r.Cause, r.Err)
	return r
}

// Commit sends a transaction once, with the given options. The last items of the transaction are
// guards, which check that locks are held. The parameter "guards" is their number. Commit cancels
// the request if ctx ends.
func (s *Sender) Commit(ctx context.Context, in *dynamodb.TransactWriteItemsInput, guards int, options ...func(*dynamodb.Options)) (decide.CommitReply, error) {
	_, err := s.DB.TransactWriteItems(ctx, in, append(options, Once)...)
	reply := decide.ClassifyCommit(err, len(in.TransactItems), guards)
	reply.Cause, err = s.causeOf(reply.Cause, err)
	return reply, err
}

func (s *Sender) failed(ctx context.Context, cause decide.Cause, err error) {
	if err != nil && cause != decide.ConditionFailed {
		s.Log.LogAttrs(ctx, slog.LevelDebug, "leasehold: request failed", slog.Any("err", err))
	}
}

// causeOf returns the cause that decides whether the client retries after err, and the error that
// the caller should return. The cause Unidentified (the credentials are missing or refused) becomes
// Unreachable if DynamoDB has accepted an earlier request of this client, and Refused otherwise.
// Other causes are returned unchanged.
func (s *Sender) causeOf(cause decide.Cause, err error) (decide.Cause, error) {
	if !s.accepted.Load() {
		if !decide.Accepted(err) {
			return cause.After(false), err
		}
		s.accepted.Store(true)
	}
	if cause == decide.Unidentified && decide.NotSigned(err) {
		err = &UnsignedError{err}
	}
	return cause.After(true), err
}
