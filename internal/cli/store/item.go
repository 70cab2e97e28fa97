package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Item reads what is stored under a key, whatever it is.
func (s *Store) Item(ctx context.Context, key leasehold.Key) (protocol.Item, error) {
	// No client stands between these commands and the table, which would refuse the key.
	if !strings.HasPrefix(key.Partition, s.Prefix) {
		return nil, &leasehold.PrefixError{Table: s.Table, Key: key, Prefixes: []string{s.Prefix}}
	}
	if err := s.Proto.CheckKey(protocol.Key(key)); err != nil {
		return nil, misuse.Errorf("%s: %v", wording.Key(key), err)
	}
	reader := holders.NewReader(s.DB, s.Table, s.Proto)
	found, err := reader.ByKey(ctx, []protocol.Key{protocol.Key(key)})
	switch item := found[protocol.Key(key)]; {
	case err != nil:
		return nil, &leasehold.OpError{Op: "get", Table: s.Table, Key: key, Err: err}
	case item == nil:
		return nil, s.NotFound(key)
	default:
		return item, nil
	}
}

// NotFound is the error that nothing is stored under a key.
func (s *Store) NotFound(key leasehold.Key) error {
	return fmt.Errorf("%w: %s in %s", leasehold.ErrNotFound, wording.Key(key), s.Called())
}

// IsSession reports whether the row of key is that of a shared lease.
func (s *Store) IsSession(key leasehold.Key) bool {
	return protocol.IsSessionKey(s.Proto, protocol.Key(key))
}
