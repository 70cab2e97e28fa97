package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// readLimit is how long a server that never answers is waited for, as long as those wait who
// read by a client.
const readLimit = 10 * time.Second

// Item reads what is stored under a key, whatever it is.
func (s *Store) Item(ctx context.Context, key leasehold.Key) (protocol.Item, error) {
	// No client stands between these commands and the table, which would refuse the key.
	if !strings.HasPrefix(key.Partition, s.Prefix) {
		return nil, &leasehold.PrefixError{Table: s.Table, Key: key, Prefixes: []string{s.Prefix}}
	}
	k, err := s.Proto.Key(protocol.Key(key))
	if err != nil {
		return nil, misuse.Errorf("%s: %v", wording.Key(key), err)
	}
	within, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	out, err := s.DB.GetItem(within, &dynamodb.GetItemInput{TableName: aws.String(s.Table), Key: k, ConsistentRead: aws.Bool(true)})
	switch {
	case err != nil:
		return nil, &leasehold.OpError{Op: "get", Table: s.Table, Key: key, Err: err}
	case len(out.Item) == 0:
		return nil, s.NotFound(key)
	}
	return out.Item, nil
}

// NotFound is the error that nothing is stored under a key.
func (s *Store) NotFound(key leasehold.Key) error {
	return fmt.Errorf("%w: %s in %s", leasehold.ErrNotFound, wording.Key(key), s.Called())
}

// IsSession reports whether the row of key is that of a shared lease.
func (s *Store) IsSession(key leasehold.Key) bool {
	return protocol.IsSessionKey(s.Proto, protocol.Key(key))
}
