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
}

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
	out, err := s.store.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.store.table), Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) == 0 {
		return own, err
	}
	row, err := s.proto.Session().Decode(out.Item)
	if err != nil {
		return own, err
	}
	return watched{version: row.Version, lease: row.Lease, dead: row.Released}, nil
}
