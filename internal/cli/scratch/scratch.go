// Package scratch is the keys of the commands that try out a table: doctor, bench and
// demo. They begin with the command's name, then comes something random, so that no lock
// of anybody else has such a key, and they are deleted in the end, whoever holds them by
// then. What is left if that fails locks nothing else.
package scratch

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// concurrentDeletes bounds the requests that delete keys.
const concurrentDeletes = 32

// Table is the table that is tried out.
type Table struct {
	DB     *dynamodb.Client
	Name   string
	Layout layout.Layout
}

// Random appends something random.
func Random(prefix string) string { return prefix + strings.ToLower(rand.Text()[:8]) }

// Key returns a key of the table. It has that sort key only if the table needs one.
func (t Table) Key(partition, sort string) leasehold.Key {
	key := protocol.Key{Partition: partition}
	if proto, err := records.Of(t.Layout); err == nil {
		key = proto.Complete(key)
		if proto.Schema().Sort != "" && key.Sort == "" {
			key.Sort = sort
		}
	}
	return leasehold.Key(key)
}

// Acquire acquires a key.
func Acquire(ctx context.Context, locks *leasehold.Client, key leasehold.Key, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	if key.Sort != "" {
		opts = append(opts, leasehold.WithSortKey(key.Sort))
	}
	return locks.Acquire(ctx, key.Partition, opts...)
}

// Delete deletes the records of keys, whoever holds them by now.
func (t Table) Delete(ctx context.Context, keys ...leasehold.Key) error {
	proto, err := records.Of(t.Layout)
	if err != nil {
		return err
	}
	failed := make([]error, len(keys))
	requests := make(chan struct{}, concurrentDeletes)
	var wg sync.WaitGroup
	for i, key := range keys {
		item, err := proto.Key(protocol.Key(key))
		if err != nil {
			return err
		}
		wg.Go(func() {
			requests <- struct{}{}
			defer func() { <-requests }()
			_, failed[i] = t.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(t.Name), Key: item})
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}
