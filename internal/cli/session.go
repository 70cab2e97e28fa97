package cli

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// heartbeat is what a holder renews: the version of its record, or of its session
// row. A holder whose version stays the same for lease is dead.
type heartbeat struct {
	version string
	lease   time.Duration
	dead    bool // the session has ended
	shared  bool // it is that of a session
}

// missingRowLease is how long a session's row must be missing before a client
// with the default lease takes over its locks.
const missingRowLease = 20 * time.Second

// sessionReader reads the session rows of holders that renew a session instead
// of each record.
type sessionReader struct {
	store *store
	proto protocol.Sharing // nil: the layout has no sessions
}

func newSessionReader(s *store, proto protocol.Protocol) *sessionReader {
	sharing, _ := proto.(protocol.Sharing)
	return &sessionReader{s, sharing}
}

// heartbeat returns the heartbeat of a held record's holder. A holder without a
// session renews the record itself.
func (s *sessionReader) heartbeat(ctx context.Context, r leasehold.Record) (heartbeat, error) {
	own := heartbeat{version: r.Version, lease: r.Lease}
	id := protocol.ClientID(r.Owner)
	if s == nil || s.proto == nil || id == "" {
		return own, nil
	}
	key, err := s.proto.Session().Key(s.proto.SessionKey(id))
	if err != nil {
		return own, err
	}
	item, err := s.item(ctx, key)
	switch {
	case err != nil:
		return own, err
	case item == nil:
		// The client renews its locks one by one. Or its row was deleted, by
		// somebody or by TTL long after it expired.
		uses, err := s.usesSession(ctx, r, id)
		if uses {
			own = heartbeat{version: "none", lease: missingRowLease, shared: true}
		}
		return own, err
	}
	row, err := s.proto.Session().Decode(item)
	if err != nil {
		return own, err
	}
	return heartbeat{version: row.Version, lease: row.Lease, dead: row.Released, shared: true}, nil
}

// usesSession reports whether a record names that session.
func (s *sessionReader) usesSession(ctx context.Context, r leasehold.Record, session string) (bool, error) {
	key, err := s.proto.Key(protocol.Key(r.Key))
	if err != nil {
		return false, err
	}
	item, err := s.item(ctx, key)
	if err != nil || item == nil {
		return false, err
	}
	now, err := s.proto.Decode(item)
	return err == nil && now.Session == session, nil // a bad record is reported elsewhere
}

func (s *sessionReader) item(ctx context.Context, key protocol.Item) (protocol.Item, error) {
	out, err := s.store.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.store.table), Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) == 0 {
		return nil, err
	}
	return out.Item, nil
}
