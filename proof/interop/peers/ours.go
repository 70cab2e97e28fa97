//go:build linux

package peers

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
)

// oursName is the argv[0] that makes this program run as the driver for leasehold.
const oursName = "leasehold-interop-ours"

// Any program that imports this package, even a test, may be started again as the driver
// for leasehold. So init checks argv[0] before main runs and flags are parsed.
func init() {
	if os.Args[0] == oursName {
		if err := beOurs(os.Args[1], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0) // exits without releasing the held locks: the driver must end like a process that dies
	}
}

// Ours returns a Peer that runs leasehold with the named layout.
func Ours(layoutName string) Peer {
	return Peer{
		Name: "leasehold/" + layoutName, Version: "this", Layout: layoutName,
		Heartbeats: true, ManualHeartbeat: true,
		command: func(context.Context) (*exec.Cmd, error) {
			cmd := exec.Command("/proc/self/exe", layoutName)
			cmd.Args[0] = oursName
			return cmd, nil
		},
	}
}

// ours is a leasehold client in the driver's process.
type ours struct {
	layout string
	client *leasehold.Client // nil before the request "open"
	manual bool              // true if the client does not renew locks in the background

	mu    sync.Mutex
	locks map[int64]*leasehold.Lock
}

// beOurs is the main function of the driver for leasehold. It answers requests until its input
// ends.
func beOurs(layoutName string, requests io.Reader, answers io.Writer) error {
	var first *ours
	clients := map[int64]*ours{}
	writing := make(chan struct{}, 1)
	answer := func(r Reply) {
		b, err := json.Marshal(r)
		if err != nil {
			b = fmt.Appendf(nil, `{"id":%d,"error":{"kind":"failed","message":%q}}`, r.ID, err.Error())
		}
		writing <- struct{}{}
		_, _ = answers.Write(append(b, '\n')) // an error does not matter: it means that the process that reads the answers has ended
		<-writing
	}
	lines := bufio.NewReader(requests)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var r Request
		if err := r.read(line); err != nil {
			return err
		}
		if r.Do == "open" { // this request is handled before the next line is read, because it creates the client that other requests use
			o := &ours{layout: layoutName, locks: map[int64]*leasehold.Lock{}}
			answer(reply(r.ID, Reply{}, o.open(line)))
			first, clients[r.ID] = cmp.Or(first, o), o
			continue
		}
		o := cmp.Or(clients[r.Client], first)
		go func() {
			out, err := o.do(context.Background(), r)
			answer(reply(r.ID, out, err))
		}()
	}
}

func reply(id int64, r Reply, err error) Reply {
	r.ID = id
	if err == nil {
		return r
	}
	r.Error = &Error{Kind: "failed", Message: err.Error()}
	switch {
	case errors.Is(err, leasehold.ErrHeld):
		r.Error.Kind = "held"
	case errors.Is(err, leasehold.ErrLost):
		r.Error.Kind = "lost"
	case errors.Is(err, errors.ErrUnsupported):
		r.Error.Kind = "unsupported"
	}
	return r
}

func (o *ours) open(line []byte) error {
	var s Settings
	if err := s.read(line); err != nil {
		return err
	}
	l, err := s.layout(o.layout)
	if err != nil {
		return err
	}
	db := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")),
		Region:       os.Getenv("AWS_REGION"),
		Credentials: credentials.NewStaticCredentialsProvider(
			os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
	}, func(o *dynamodb.Options) {
		if s.Connections > 0 {
			o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
				t.MaxIdleConns, t.MaxIdleConnsPerHost = s.Connections, s.Connections
			})
		}
	})
	o.manual = s.Heartbeat == 0
	o.client, err = leasehold.New(db, leasehold.Config{
		Table: s.Table, Layout: l, Owner: s.Owner,
		Lease: s.Lease, RenewEvery: s.Heartbeat, PollMax: s.Poll, SharedLease: s.Shared,
	})
	return err
}

func (o *ours) do(ctx context.Context, r Request) (Reply, error) {
	lock, known := o.lock(r.Lock)
	if r.Lock != 0 && !known {
		return Reply{}, fmt.Errorf("this client has no lock %d", r.Lock)
	}
	switch r.Do {
	case "acquire":
		return o.acquire(ctx, r)
	case "heartbeat":
		return Reply{}, heartbeat(ctx, lock, r)
	case "release":
		return Reply{}, release(ctx, lock, r)
	case "get":
		found, err := o.client.Get(ctx, r.Key, sortKey(r)...)
		if errors.Is(err, leasehold.ErrNotFound) {
			return Reply{}, nil
		}
		return Reply{Record: recordOf(found)}, err
	case "list":
		return o.list(ctx, r)
	case "held":
		return Reply{Held: lock.Err() == nil}, nil
	}
	return Reply{}, fmt.Errorf("%s: %w", r.Do, errors.ErrUnsupported)
}

func (o *ours) acquire(ctx context.Context, r Request) (Reply, error) {
	if r.Owner != "" || r.Update || r.Consistently || r.Reentrant || r.Again != 0 {
		return Reply{}, fmt.Errorf("this option: %w", errors.ErrUnsupported)
	}
	var opts []leasehold.AcquireOption
	if r.SortValue != "" {
		opts = append(opts, leasehold.WithSortKey(r.SortValue))
	}
	if r.Data != nil {
		opts = append(opts, leasehold.WithData(r.Data))
	}
	if r.Attributes != nil {
		opts = append(opts, leasehold.WithAttributes(r.Attributes))
	}
	if r.IfExists {
		opts = append(opts, leasehold.IfExists())
	}
	if r.KeepOnRelease {
		opts = append(opts, leasehold.DeleteOnRelease(false))
	}
	if o.manual {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	if r.Wait == 0 {
		opts = append(opts, leasehold.NoWaitEvenIfDead())
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Wait)
		defer cancel()
	}
	lock, err := o.grant(ctx, r, opts)
	if err != nil {
		return Reply{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.locks[r.ID] = lock
	return Reply{Record: recordOf(lock.Record())}, nil
}

// grant acquires a key, or one of the key's slots if r.Slots is set.
func (o *ours) grant(ctx context.Context, r Request, opts []leasehold.AcquireOption) (*leasehold.Lock, error) {
	if r.Slots == 0 {
		return o.client.Acquire(ctx, r.Key, opts...)
	}
	slots := make([]leasehold.Key, r.Slots)
	for i := range slots {
		slots[i] = leasehold.Key{Partition: r.Key, Sort: strconv.Itoa(i)}
	}
	rand.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
	return o.client.AcquireAny(ctx, slots, opts...)
}

func heartbeat(ctx context.Context, lock *leasehold.Lock, r Request) error {
	var opts []leasehold.RenewOption
	if r.Data != nil {
		opts = append(opts, leasehold.WithData(r.Data))
	}
	if r.DeleteData {
		opts = append(opts, leasehold.WithData(nil))
	}
	if r.Lease != 0 {
		opts = append(opts, leasehold.WithLease(r.Lease))
	}
	return lock.Renew(ctx, opts...)
}

func release(ctx context.Context, lock *leasehold.Lock, r Request) error {
	var opts []leasehold.ReleaseOption
	if r.Data != nil {
		opts = append(opts, leasehold.WithData(r.Data))
	}
	switch {
	case r.Keep == nil:
	case *r.Keep:
		opts = append(opts, leasehold.DeleteOnRelease(false))
	default:
		opts = append(opts, leasehold.DeleteOnRelease(true))
	}
	return lock.Release(ctx, opts...)
}

func (o *ours) list(ctx context.Context, r Request) (Reply, error) {
	var out Reply
	for found, err := range o.client.List(ctx, leasehold.ListOptions{Partition: r.Key}) {
		if err != nil {
			return out, err
		}
		out.Records = append(out.Records, *recordOf(found))
	}
	return out, nil
}

func (o *ours) lock(id int64) (lock *leasehold.Lock, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lock, known = o.locks[id]
	return lock, known
}

func sortKey(r Request) []leasehold.KeyOption {
	if r.SortValue == "" {
		return nil
	}
	return []leasehold.KeyOption{leasehold.WithSortKey(r.SortValue)}
}

func recordOf(r leasehold.Record) *Record {
	return &Record{
		Key: r.Key.Partition, SortValue: r.Key.Sort, Owner: r.Owner, Version: r.Version,
		Lease: r.Lease, Expires: r.ExpiresAt, Released: r.Released, Token: r.Token,
		Data: r.Data, Attributes: r.Attributes,
	}
}
