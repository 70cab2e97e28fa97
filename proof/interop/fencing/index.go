package fencing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/leasehold-go/leasehold"
)

// Index is the document that SaveIndex writes.
type Index struct {
	Pages []string `json:"pages"`
	Fence int64    `json:"fence"` // fencing token of the lock under which the document was written; SaveIndex sets it
}

// SaveIndex writes the index to an S3 object under the given lock. ErrLost means that a later
// holder has written the object. An error with the code PreconditionFailed or
// ConditionalRequestConflict means that the object was written after SaveIndex had read it. The
// writer was another caller, or SaveIndex itself if the SDK repeated a write that had no reply.
// After such an error, call SaveIndex again: the token decides whether the write is allowed.
func SaveIndex(ctx context.Context, db *s3.Client, lock *leasehold.Lock, bucket, key string, index Index) error {
	index.Fence = lock.Token() // the token makes the content differ: equal pages from two holders would otherwise have the same ETag
	body, err := json.Marshal(index)
	if err != nil {
		return err
	}
	put := &s3.PutObjectInput{
		Bucket:   &bucket,
		Key:      &key,
		Body:     bytes.NewReader(body),
		Metadata: map[string]string{"fence": strconv.FormatInt(lock.Token(), 10)},
	}
	var none *types.NotFound
	switch head, err := db.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key}); {
	case errors.As(err, &none):
		put.IfNoneMatch = aws.String("*")
	case err != nil:
		return err
	default:
		seen, err := strconv.ParseInt(head.Metadata["fence"], 10, 64)
		if err != nil {
			return fmt.Errorf("%s/%s was written without a token: %w", bucket, key, err)
		}
		if seen > lock.Token() {
			return fmt.Errorf("a later holder of %s has written %s/%s: %w", lock.Key(), bucket, key, leasehold.ErrLost)
		}
		put.IfMatch = head.ETag
	}
	_, err = db.PutObject(ctx, put)
	return err
}
