package cli

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
)

// Keys of the commands that try out a table. They begin with one of these, then
// comes something random: no lock of anybody else has such a key.
const (
	doctorPrefix = "leasehold-doctor/"
	benchPrefix  = "leasehold-bench/"
)

// concurrentDeletes bounds the requests that delete keys.
const concurrentDeletes = 32

// randomKey appends something random.
func randomKey(prefix string) string { return prefix + strings.ToLower(rand.Text()[:8]) }

// testKey returns a key to try out the table with. It has a sort key if the table
// needs one.
func (s *store) testKey(partition, sort string) leasehold.Key {
	key := completeKey(s.layout, leasehold.Key{Partition: partition})
	if proto, err := records.Of(s.layout); err == nil && proto.Schema().Sort != "" && key.Sort == "" {
		key.Sort = sort
	}
	return key
}

// acquireTestKey acquires a key of testKey.
func acquireTestKey(ctx context.Context, locks *leasehold.Client, key leasehold.Key, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	if key.Sort != "" {
		opts = append(opts, leasehold.WithSortKey(key.Sort))
	}
	return locks.Acquire(ctx, key.Partition, opts...)
}

// deleteTestKeys deletes the records of keys that nobody else uses, whoever holds
// them by now.
func (s *store) deleteTestKeys(ctx context.Context, keys ...leasehold.Key) error {
	proto, err := records.Of(s.layout)
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
			_, failed[i] = s.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(s.table), Key: item})
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}
