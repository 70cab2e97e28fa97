package demo

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/scratch"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Command is the hidden command that is a process: its arguments are a name and a key.
const Command = "demo-process"

// Orders to a process.
const (
	acquire = "acquire"
	stop    = "stop"
	write   = "write"
	clean   = "clean"
)

// Events that it sends back.
const (
	ready    = "ready"
	waiting  = "waiting"
	granted  = "granted"
	stopping = "stopping"
	wrote    = "wrote"
	cleaned  = "cleaned"
	failed   = "failed"
)

// Event is one line of output of a process, and of the demo in JSON.
type Event struct {
	ElapsedMs *int64 `json:"elapsedMs,omitempty"`
	Process   string `json:"process"`
	Event     string `json:"event"`
	Token     int64  `json:"token,omitempty"`
	Holder    string `json:"holder,omitempty"`
	Refused   bool   `json:"refused,omitempty"`
	Lost      bool   `json:"lost,omitempty"`
	Error     string `json:"error,omitempty"`
}

// Process is one process of the demo, from inside.
type Process struct {
	Name, Key string
	Lease     time.Duration
	Out       io.Writer // of events

	store       *store.Store
	lock        *leasehold.Lock
	key, target leasehold.Key // target is what the lock guards
	sending     sync.RWMutex  // held for reading during a request; lock it to keep requests back
}

func (p *Process) tell(e Event) {
	e.Process = p.Name
	_ = json.NewEncoder(p.Out).Encode(e) // fails only if the demo has ended, which kills this process
}

// Fail tells the demo why the process ends.
func (p *Process) Fail(why string) { p.tell(Event{Event: failed, Error: why}) }

// held sends requests while nobody keeps them back.
type held struct {
	dynamodb.HTTPClient
	sending *sync.RWMutex
}

func (h held) Do(r *http.Request) (*http.Response, error) {
	h.sending.RLock()
	defer h.sending.RUnlock()
	return h.HTTPClient.Do(r)
}

// Run follows orders until they end.
func (p *Process) Run(ctx context.Context, s *store.Store, orders io.Reader) error {
	s.DB = dynamodb.New(s.DB.Options(), func(o *dynamodb.Options) { o.HTTPClient = held{o.HTTPClient, &p.sending} })
	p.store = s
	p.key, p.target = scratch.Key(s, p.Key, "demo"), scratch.Key(s, p.Key+"/target", "demo")
	locks, err := s.Client(leasehold.Config{Owner: p.Name, Lease: p.Lease, PollMax: p.Lease / 20, OnEvent: func(_ context.Context, e leasehold.Event) {
		if e.Kind == leasehold.EventWaiting {
			p.tell(Event{Event: waiting, Holder: cmp.Or(wording.OwnerWithoutID(e.Holder.Owner), "somebody")})
		}
	}})
	if err != nil {
		return err
	}
	p.tell(Event{Event: ready})
	for lines := bufio.NewScanner(orders); err == nil && lines.Scan(); {
		switch lines.Text() {
		case acquire:
			err = p.acquire(ctx, locks)
		case stop:
			// Stop between two requests: a process that is stopped during a
			// request to a local store blocks the file for all others.
			p.sending.Lock()
			p.tell(Event{Event: stopping})
			process.StopSelf()
			p.sending.Unlock()
		case write:
			var refused bool
			if refused, err = p.write(ctx); err == nil {
				p.tell(Event{Event: wrote, Refused: refused, Lost: errors.Is(p.lock.Err(), leasehold.ErrLost)})
			}
		case clean:
			if err = p.clean(ctx); err == nil {
				p.tell(Event{Event: cleaned})
			}
		}
	}
	return err
}

// acquire acquires the key, and does the fenced work. The target is in the lock table, so
// it is made as the record of a lock: leasehold ls can read that in any layout.
func (p *Process) acquire(ctx context.Context, locks *leasehold.Client) error {
	var err error
	if p.lock, err = scratch.Acquire(ctx, locks, p.key); err != nil {
		return err
	}
	if _, err := locks.TryAcquire(ctx, p.target.Partition, leasehold.WithSortKey(p.target.Sort), leasehold.WithoutRenewal()); err != nil && !errors.Is(err, leasehold.ErrHeld) {
		return err
	}
	if _, err := p.write(ctx); err != nil {
		return err
	}
	p.tell(Event{Event: granted, Token: p.lock.Token()})
	return nil
}

// fence is the target's attribute with the highest token that has written to it.
const fence = "fence"

// write does the fenced work, and does not check the lock first: the target
// refuses a write with a token lower than one it has seen.
func (p *Process) write(ctx context.Context) (refused bool, err error) {
	target, err := p.store.Proto.Key(protocol.Key(p.target))
	if err != nil {
		return false, err
	}
	_, err = p.store.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String(p.store.Table),
		Key:                       target,
		UpdateExpression:          aws.String("SET #fence = :token"),
		ConditionExpression:       aws.String("attribute_not_exists(#fence) OR #fence <= :token"),
		ExpressionAttributeNames:  map[string]string{"#fence": fence},
		ExpressionAttributeValues: protocol.Item{":token": &types.AttributeValueMemberN{Value: strconv.FormatInt(p.lock.Token(), 10)}},
	})
	var refusal *types.ConditionalCheckFailedException
	if errors.As(err, &refusal) {
		return true, nil
	}
	return false, err
}

// clean removes the demo's rows from the table. No other demo uses these keys, so
// they are deleted whoever holds them by now.
func (p *Process) clean(ctx context.Context) error {
	err := p.lock.Release(ctx)
	if errors.Is(err, leasehold.ErrLost) {
		err = nil
	}
	return errors.Join(err, scratch.Delete(ctx, p.store, p.key, p.target))
}
