//go:build linux

package peers

import (
	"context"
	"fmt"

	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
	"github.com/leasehold-go/leasehold/table"
)

// CreateTable creates the table whose name is in the settings s, with the key schema that the
// peer needs.
func (p Peer) CreateTable(ctx context.Context, server *engines.Server, s Settings) error {
	l, err := s.layout(p.Layout)
	if err != nil {
		return err
	}
	return table.Create(ctx, server.Client(), table.Spec{Name: s.Table, Layout: l})
}

// layout returns the named layout with the attribute names in s.
func (s Settings) layout(name string) (layout.Layout, error) {
	switch name {
	case layout.Native{}.Name():
		return layout.Native{PartitionKey: s.PartitionKey, SortKey: s.SortKey, TTL: s.TTL}, nil
	case layout.AWSLabs{}.Name():
		return layout.AWSLabs{PartitionKey: s.PartitionKey, SortKey: s.SortKey}, nil
	case layout.Dynamolock{}.Name():
		return layout.Dynamolock{PartitionKey: s.PartitionKey, SortKey: s.SortKey}, nil
	case layout.PythonDynamoDBLock{}.Name():
		return layout.PythonDynamoDBLock{PartitionKey: s.PartitionKey, SortKey: s.SortKey, TTL: s.TTL}, nil
	}
	if s.PartitionKey != "" || s.SortKey != "" || s.TTL != "" {
		return nil, fmt.Errorf("peers: %s has fixed key names", name)
	}
	return layout.Parse(name)
}
