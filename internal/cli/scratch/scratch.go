// Package scratch makes keys for the commands that try out a table: doctor and demo. A key
// consists of the command's name and a random suffix, so that no real lock has it. The
// records are deleted at the end, even if another client holds the keys by then. If that
// fails, the remaining records do not affect other locks.
package scratch

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// Random appends a random suffix.
func Random(prefix string) string { return prefix + strings.ToLower(rand.Text()[:8]) }

// Key returns a key of the table. It has the sort key only if the table needs one.
func Key(s *store.Store, partition, sort string) leasehold.Key {
	key := s.Key(partition, "")
	if s.Proto.Schema().Sort != "" && key.Sort == "" {
		key.Sort = sort
	}
	return key
}

// Acquire acquires a key.
func Acquire(ctx context.Context, locks *leasehold.Client, key leasehold.Key, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
	return locks.Acquire(ctx, key.Partition, append(opts, leasehold.WithSortKey(key.Sort))...)
}

// Delete deletes the records of keys, even if another client holds them.
func Delete(ctx context.Context, s *store.Store, keys ...leasehold.Key) error {
	var failed error
	for _, key := range keys {
		item, err := s.Proto.Key(key)
		if err == nil {
			err = attempts.Patiently(ctx, func(ctx context.Context) error {
				_, err := s.Requests().DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(s.Table), Key: item}, attempts.Once)
				return err
			})
		}
		failed = errors.Join(failed, err)
	}
	return failed
}
