//go:build ignore

// Command dynamolock is the driver for dynamolock's lock client: it speaks the line protocol of
// proof/interop/README.md. The import path of dynamolock in this file is a placeholder. The build
// replaces it with the module path of a checkout.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"cirello.io/dynamolock/v5"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type request struct {
	ID int64  `json:"id"`
	Do string `json:"do"`

	// The following fields are for the request "open", which makes a client.
	Table        string `json:"table"`
	PartitionKey string `json:"partitionKey"`
	Owner        string `json:"owner"`
	LeaseMs      int64  `json:"leaseMs"`
	HeartbeatMs  int64  `json:"heartbeatMs"`
	PollMs       int64  `json:"pollMs"`

	Client     int64           `json:"client"`
	Key        string          `json:"key"`
	Lock       int64           `json:"lock"`
	WaitMs     int64           `json:"waitMs"`
	Data       []byte          `json:"data"`
	Attributes json.RawMessage `json:"attributes"`
	Keep       *bool           `json:"keep"`
}

type record struct {
	Key        string          `json:"key"`
	Owner      string          `json:"owner,omitempty"`
	LeaseMs    int64           `json:"leaseMs,omitempty"`
	Data       []byte          `json:"data,omitempty"`
	Attributes json.RawMessage `json:"attributes,omitempty"`
}

type failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

type reply struct {
	ID     int64    `json:"id"`
	Record *record  `json:"record,omitempty"`
	Held   bool     `json:"held,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

// errUnsupported is returned for a request that the library does not support.
var errUnsupported = errors.New("the library cannot do this")

func main() {
	d := &driver{clients: map[int64]*client{}, locks: map[int64]*dynamolock.Lock{}}
	for lines := bufio.NewReader(os.Stdin); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // return without releasing the held locks: the driver must end like a process that dies
		}
		var r request
		_ = json.Unmarshal(line, &r) // the error does not matter: the ID, which the reply needs, is decoded even if other fields are not
		strict := json.NewDecoder(bytes.NewReader(line))
		strict.DisallowUnknownFields()
		switch err := strict.Decode(&r); {
		case err != nil:
			d.answer(reply{ID: r.ID}, fmt.Errorf("%w: %w", errUnsupported, err))
		case r.Do == "open": // this request is handled before the next line is read, because it creates the client that other requests use
			d.answer(reply{ID: r.ID}, d.open(r))
		default:
			go func() {
				out, err := d.do(r)
				out.ID = r.ID
				d.answer(out, err)
			}()
		}
	}
}

// client is a lock client of dynamolock, with its settings.
type client struct {
	*dynamolock.Client
	lease, poll time.Duration
}

type driver struct {
	mu      sync.Mutex // guards the following fields and stdout
	first   *client
	clients map[int64]*client
	locks   map[int64]*dynamolock.Lock
}

func (d *driver) answer(r reply, err error) {
	var refused *dynamolock.LockNotGrantedError
	var changed *types.ConditionalCheckFailedException
	kind := "failed"
	switch {
	case err == nil:
	case errors.Is(err, errUnsupported):
		kind = "unsupported"
	case errors.As(err, &refused), errors.Is(err, context.DeadlineExceeded):
		kind = "held"
	case errors.As(err, &changed), errors.Is(err, dynamolock.ErrLockAlreadyReleased):
		kind = "lost"
	}
	if err != nil {
		r.Error = &failure{kind, err.Error()}
	}
	b, err := json.Marshal(r)
	if err != nil {
		b = fmt.Appendf(nil, `{"id":%d,"error":{"kind":"failed","message":%q}}`, r.ID, err.Error())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	os.Stdout.Write(append(b, '\n'))
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (d *driver) open(r request) error {
	db := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")),
		Region:       os.Getenv("AWS_REGION"),
		Credentials:  credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
	})
	opts := []dynamolock.ClientOption{
		dynamolock.WithLeaseDuration(milliseconds(r.LeaseMs)), dynamolock.WithHeartbeatPeriod(milliseconds(r.HeartbeatMs)),
	}
	if r.PartitionKey != "" {
		opts = append(opts, dynamolock.WithPartitionKeyName(r.PartitionKey))
	}
	if r.Owner != "" {
		opts = append(opts, dynamolock.WithOwnerName(r.Owner))
	}
	made, err := dynamolock.New(db, r.Table, opts...)
	if err != nil {
		return err
	}
	c := &client{made, milliseconds(r.LeaseMs), milliseconds(r.PollMs)}
	if d.first == nil {
		d.first = c
	}
	d.clients[r.ID] = c
	return nil
}

func (d *driver) do(r request) (reply, error) {
	d.mu.Lock()
	c, lock := d.clients[r.Client], d.locks[r.Lock]
	if c == nil {
		c = d.first
	}
	d.mu.Unlock()
	if r.Lock != 0 && lock == nil {
		return reply{}, fmt.Errorf("this client has no lock %d", r.Lock)
	}
	ctx := context.Background()
	switch r.Do {
	case "acquire":
		return d.acquire(ctx, c, r)
	case "release":
		var opts []dynamolock.ReleaseLockOption
		if r.Data != nil {
			opts = append(opts, dynamolock.WithDataAfterRelease(r.Data))
		}
		if r.Keep != nil {
			opts = append(opts, dynamolock.WithDeleteLock(!*r.Keep))
		}
		_, err := release(ctx, c.Client, lock, opts)
		return reply{}, err
	case "get":
		found, err := get(ctx, c.Client, r.Key)
		if err != nil || found == nil || found.OwnerName() == "" {
			return reply{}, err
		}
		shown, err := c.record(r.Key, found)
		return reply{Record: shown}, err
	case "held":
		return reply{Held: !lock.IsExpired()}, nil
	}
	return reply{}, fmt.Errorf("%s: %w", r.Do, errUnsupported)
}

func (d *driver) acquire(ctx context.Context, c *client, r request) (reply, error) {
	var opts []dynamolock.AcquireLockOption
	if r.Data != nil {
		opts = append(opts, dynamolock.WithData(r.Data), dynamolock.ReplaceData())
	}
	if r.Attributes != nil {
		attributes, err := attributevalue.UnmarshalMapJSON(r.Attributes)
		if err != nil {
			return reply{}, err
		}
		opts = append(opts, dynamolock.WithAdditionalAttributes(attributes))
	}
	if c.poll > 0 {
		opts = append(opts, dynamolock.WithRefreshPeriod(c.poll))
	}
	if r.WaitMs == 0 {
		opts = append(opts, dynamolock.FailIfLocked())
	} else {
		opts = append(opts, dynamolock.WithAdditionalTimeToWaitForLock(milliseconds(r.WaitMs)))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, milliseconds(r.WaitMs))
		defer cancel()
	}
	lock, err := acquire(ctx, c.Client, r.Key, opts)
	if err != nil {
		return reply{}, err
	}
	d.mu.Lock()
	d.locks[r.ID] = lock
	d.mu.Unlock()
	granted, err := c.record(r.Key, lock)
	return reply{Record: granted}, err
}

func (c *client) record(key string, lock *dynamolock.Lock) (*record, error) {
	r := &record{Key: key, Owner: lock.OwnerName(), LeaseMs: c.lease.Milliseconds(), Data: lock.Data()}
	if attributes := lock.AdditionalAttributes(); len(attributes) > 0 {
		var err error
		if r.Attributes, err = attributevalue.MarshalMapJSON(attributes); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Each of the next three functions calls a method of dynamolock whose name differs between
// the major versions of dynamolock.

func acquire(ctx context.Context, c any, key string, opts []dynamolock.AcquireLockOption) (*dynamolock.Lock, error) {
	switch c := c.(type) {
	case interface {
		AcquireLockWithContext(context.Context, string, ...dynamolock.AcquireLockOption) (*dynamolock.Lock, error)
	}:
		return c.AcquireLockWithContext(ctx, key, opts...)
	case interface {
		AcquireLock(context.Context, string, ...dynamolock.AcquireLockOption) (*dynamolock.Lock, error)
	}:
		return c.AcquireLock(ctx, key, opts...)
	}
	return nil, errUnsupported
}

func release(ctx context.Context, c any, lock *dynamolock.Lock, opts []dynamolock.ReleaseLockOption) (bool, error) {
	switch c := c.(type) {
	case interface {
		ReleaseLockWithContext(context.Context, *dynamolock.Lock, ...dynamolock.ReleaseLockOption) (bool, error)
	}:
		return c.ReleaseLockWithContext(ctx, lock, opts...)
	case interface {
		ReleaseLock(context.Context, *dynamolock.Lock, ...dynamolock.ReleaseLockOption) (bool, error)
	}:
		return c.ReleaseLock(ctx, lock, opts...)
	}
	return false, errUnsupported
}

func get(ctx context.Context, c any, key string) (*dynamolock.Lock, error) {
	switch c := c.(type) {
	case interface {
		GetWithContext(context.Context, string) (*dynamolock.Lock, error)
	}:
		return c.GetWithContext(ctx, key)
	case interface {
		Get(context.Context, string) (*dynamolock.Lock, error)
	}:
		return c.Get(ctx, key)
	}
	return nil, errUnsupported
}
