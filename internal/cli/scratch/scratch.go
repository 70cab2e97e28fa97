// Package scratch is the keys of the commands that try out a table: doctor, bench and
// demo. They begin with the command's name, then comes something random, so that no lock
// of anybody else has such a key, and they are deleted in the end, whoever holds them by
// then. What is left if that fails locks nothing else.
package scratch

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// concurrentDeletes bounds the requests that delete keys.
const concurrentDeletes = 32

// Random appends something random.
func Random(prefix string) string { return prefix + strings.ToLower(rand.Text()[:8]) }

// Key returns a key of the table. It has that sort key only if the table needs one.
func Key(s *store.Store, partition, sort string) leasehold.Key {
	key := store.KeyOf(s.Proto, partition, "")
	if s.Proto.Schema().Sort != "" && key.Sort == "" {
		key.Sort = sort
	}
	return key
}

// Acquire acquires a key.
func Acquire(ctx context.Context, locks *leasehold.Client, key leasehold.Key, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return locks.Acquire(ctx, key.Partition, append(opts, leasehold.WithSortKey(key.Sort))...)
}

// Delete deletes the records of keys, whoever holds them by now.
func Delete(ctx context.Context, s *store.Store, keys ...leasehold.Key) error {
	var deletes errgroup.Group
	deletes.SetLimit(concurrentDeletes)
	for _, key := range keys {
		deletes.Go(func() error {
			item, err := s.Proto.Key(protocol.Key(key))
			if err == nil {
				_, err = s.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(s.Table), Key: item})
			}
			return err
		})
	}
	return deletes.Wait()
}
