// Package scratch is the keys of the commands that try out a table: doctor and demo.
// They begin with the command's name, then comes something random, so that no lock
// of anybody else has such a key, and they are deleted in the end, whoever holds them by
// then. What is left if that fails locks nothing else.
package scratch

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

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
	var failed error
	for _, key := range keys {
		item, err := s.Proto.Key(key)
		if err == nil {
			_, err = s.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(s.Table), Key: item})
		}
		failed = errors.Join(failed, err)
	}
	return failed
}
