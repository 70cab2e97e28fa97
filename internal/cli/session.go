package cli

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// watched is what tells whether a holder lives: a version that stands still for
// its lease, of the record itself or of its holder's session.
type watched struct {
	version string
	lease   time.Duration
	dead    bool // for good
	shared  bool // it is the session
}

// noRowFor is how long a session's row is to be missing before its locks are
// taken over by a client that has the default lease.
const noRowFor = 20 * time.Second

// sessionReader reads the sessions that holders renew in the place of their
// records.
type sessionReader struct {
	store *store
	proto protocol.Sharing // nil: the layout has no sessions
}

func newSessionReader(s *store, proto protocol.Protocol) *sessionReader {
	sharing, _ := proto.(protocol.Sharing)
	return &sessionReader{s, sharing}
}

// watched returns what is to be watched of a record that is held. Whose owner
// has no session renews the record itself.
func (s *sessionReader) watched(ctx context.Context, r leasehold.Record) (watched, error) {
	own := watched{version: r.Version, lease: r.Lease}
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
		// A client that renews its locks one by one; or the row was deleted, or
		// collected long after its death.
		under, err := s.isUnder(ctx, r, id)
		if under {
			own = watched{version: "none", lease: noRowFor, shared: true}
		}
		return own, err
	}
	row, err := s.proto.Session().Decode(item)
	if err != nil {
		return own, err
	}
	return watched{version: row.Version, lease: row.Lease, dead: row.Released, shared: true}, nil
}

// isUnder reports whether a record says that it is under that session.
func (s *sessionReader) isUnder(ctx context.Context, r leasehold.Record, session string) (bool, error) {
	key, err := s.proto.Key(protocol.Key(r.Key))
	if err != nil {
		return false, err
	}
	item, err := s.item(ctx, key)
	if err != nil || item == nil {
		return false, err
	}
	now, err := s.proto.Decode(item)
	return err == nil && now.Session == session, nil // whatever else it is says so elsewhere
}

func (s *sessionReader) item(ctx context.Context, key protocol.Item) (protocol.Item, error) {
	out, err := s.store.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.store.table), Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) == 0 {
		return nil, err
	}
	return out.Item, nil
}
