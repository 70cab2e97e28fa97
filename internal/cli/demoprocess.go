package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
)

// Orders from the demo to its processes.
const (
	demoAcquire = "acquire"
	demoStop    = "stop"
	demoWrite   = "write"
	demoClean   = "clean"
)

// Events that the processes send back.
const (
	demoReady    = "ready"
	demoWaiting  = "waiting"
	demoGranted  = "granted"
	demoStopping = "stopping"
	demoWrote    = "wrote"
	demoCleaned  = "cleaned"
	demoFailed   = "failed"
)

// demoEvent is one line of output of a process of the demo, and of the demo's own
// JSON.
type demoEvent struct {
	ElapsedMs *int64 `json:"elapsedMs,omitempty"`
	Process   string `json:"process"`
	Event     string `json:"event"`
	Token     int64  `json:"token,omitempty"`
	Holder    string `json:"holder,omitempty"`
	Refused   bool   `json:"refused,omitempty"`
	Lost      bool   `json:"lost,omitempty"`
	Error     string `json:"error,omitempty"`
}

// demoProcess is the demo's side of a process.
type demoProcess struct {
	name  string
	child *process.Child
	in    io.WriteCloser
	heard chan struct{} // closed after its last event
}

// start starts a process. Its events are sent to d.events.
func (d *demo) start(args []string) (*demoProcess, error) {
	self, err := d.app.Executable()
	if err != nil {
		return nil, err
	}
	p := &demoProcess{name: args[1], heard: make(chan struct{})}
	cmd := &exec.Cmd{Path: self, Args: append([]string{"leasehold"}, args...), Env: d.app.Environ, Stderr: d.app.Env.Stderr}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.child, err = process.Start(cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.heard)
		for lines := json.NewDecoder(out); ; {
			var e demoEvent
			if lines.Decode(&e) != nil {
				return
			}
			d.events <- e
		}
	}()
	return p, nil
}

func (p *demoProcess) tell(what string) { _, _ = fmt.Fprintln(p.in, what) }

func (p *demoProcess) end() {
	p.child.Signal(syscall.SIGKILL)
	for ended := false; !ended; {
		select {
		case <-p.child.Stops:
		case <-p.child.Exited:
			ended = true
		}
	}
	<-p.heard
	p.child.Reap()
}

// newDemoProcess is the hidden command that the demo starts.
func (a *app) newDemoProcess() *cobra.Command {
	lease := defaultLease
	cmd := &cobra.Command{
		Use: "demo-process NAME KEY", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := &contender{app: a, name: args[0], key: args[1], lease: lease}
			if err := c.run(cmd); err != nil {
				c.tell(demoEvent{Event: demoFailed, Error: failure.Text(err, "table "+a.flags.Table)})
				return failure.Exit(failure.CodeTrouble, nil)
			}
			return nil
		},
	}
	cmd.Flags().Var(durationFlag{d: &lease}, "lease", "lease")
	return cmd
}

// contender is one process of the demo, seen from inside.
type contender struct {
	app       *app
	name, key string
	lease     time.Duration
	store     *store.Store
	lock      *leasehold.Lock
	sending   sync.RWMutex // held for reading during a request; lock it to keep requests back
}

func (c *contender) tell(e demoEvent) {
	e.Process = c.name
	_ = json.NewEncoder(c.app.Stdout).Encode(e) // fails only if the demo has ended, which kills this process
}

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

// run follows orders until standard input ends.
func (c *contender) run(cmd *cobra.Command) error {
	var err error
	if c.store, err = c.app.open(cmd, store.Opening{}); err != nil {
		return err
	}
	defer c.store.Close()
	c.store.DB = dynamodb.New(c.store.DB.Options(), func(o *dynamodb.Options) { o.HTTPClient = held{o.HTTPClient, &c.sending} })
	locks, err := c.store.Locks(leasehold.Config{Owner: c.name, Lease: c.lease, PollMax: c.lease / 20, OnEvent: func(_ context.Context, e leasehold.Event) {
		if e.Kind == leasehold.EventWaiting {
			c.tell(demoEvent{Event: demoWaiting, Holder: cmp.Or(wording.OwnerWithoutID(e.Holder.Owner), "somebody")})
		}
	}})
	if err != nil {
		return err
	}
	c.tell(demoEvent{Event: demoReady})
	ctx := cmd.Context()
	for orders := bufio.NewScanner(c.app.Stdin); orders.Scan(); {
		switch orders.Text() {
		case demoAcquire:
			var opts []leasehold.AcquireOption
			if locks.Capabilities().SortKey && store.CompleteKey(c.store.Layout, leasehold.Key{}).Sort == "" {
				opts = append(opts, leasehold.WithSortKey("demo"))
			}
			if c.lock, err = locks.Acquire(ctx, c.key, opts...); err != nil {
				return err
			}
			if err := c.makeTarget(ctx); err != nil {
				return err
			}
			if _, err := c.write(ctx); err != nil {
				return err
			}
			c.tell(demoEvent{Event: demoGranted, Token: c.lock.Token()})
		case demoStop:
			// Stop between two requests: a process that is stopped during a
			// request to a local store blocks the file for all others.
			c.sending.Lock()
			c.tell(demoEvent{Event: demoStopping})
			process.StopSelf()
			c.sending.Unlock()
		case demoWrite:
			refused, err := c.write(ctx)
			if err != nil {
				return err
			}
			c.tell(demoEvent{Event: demoWrote, Refused: refused, Lost: errors.Is(c.lock.Err(), leasehold.ErrLost)})
		case demoClean:
			if err := c.clean(ctx); err != nil {
				return err
			}
			c.tell(demoEvent{Event: demoCleaned})
		}
	}
	return nil
}

// fence is the target's attribute with the highest token that has written to it.
const fence = "fence"

// write does the fenced work, and does not check the lock first: the target
// refuses a write with a token lower than one it has seen.
func (c *contender) write(ctx context.Context) (refused bool, err error) {
	target, err := c.target()
	if err != nil {
		return false, err
	}
	_, err = c.store.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String(c.store.Table),
		Key:                       target,
		UpdateExpression:          aws.String("SET #fence = :token"),
		ConditionExpression:       aws.String("attribute_not_exists(#fence) OR #fence <= :token"),
		ExpressionAttributeNames:  map[string]string{"#fence": fence},
		ExpressionAttributeValues: protocol.Item{":token": &types.AttributeValueMemberN{Value: strconv.FormatInt(c.lock.Token(), 10)}},
	})
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return true, nil
	}
	return false, err
}

// makeTarget creates the row that write writes to, unless it exists. It is in the
// lock table, so it is written as a lock record of the demo: leasehold ls can
// read that in any layout.
func (c *contender) makeTarget(ctx context.Context) error {
	proto, err := records.Of(c.store.Layout)
	if err != nil {
		return err
	}
	w := proto.Grant(protocol.Grant{
		Key: c.targetKey(), Owner: c.lock.Record().Owner, Version: protocol.NewVersion(), Lease: c.lease, Now: time.Now(),
	})
	_, err = c.store.DB.UpdateItem(ctx, w.UpdateItem(c.store.Table))
	if exists := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &exists) {
		return nil
	}
	return err
}

func (c *contender) targetKey() protocol.Key {
	return protocol.Key{Partition: c.key + "/target", Sort: c.lock.Key().Sort}
}

// target returns the key of the row that write writes to.
func (c *contender) target() (protocol.Item, error) {
	proto, err := records.Of(c.store.Layout)
	if err != nil {
		return nil, err
	}
	return proto.Key(c.targetKey())
}

// clean removes the demo's rows from the table. No other demo uses these keys, so
// they are deleted whoever holds them by now.
func (c *contender) clean(ctx context.Context) error {
	released := c.lock.Release(ctx)
	if errors.Is(released, leasehold.ErrLost) {
		released = nil
	}
	proto, err := records.Of(c.store.Layout)
	if err != nil {
		return err
	}
	lock, err := proto.Key(protocol.Key(c.lock.Key()))
	if err != nil {
		return err
	}
	target, err := c.target()
	if err != nil {
		return err
	}
	for _, key := range []protocol.Item{lock, target} {
		_, err := c.store.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(c.store.Table), Key: key})
		released = errors.Join(released, err)
	}
	return released
}
