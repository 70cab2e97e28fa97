// Package demo shows how a lock passes among processes of leasehold run. One process is
// killed, and the next takes over. That process is stopped past its lease, and its write
// comes too late.
package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Demo is one run of the demo.
type Demo struct {
	Lease     time.Duration
	Store     *store.Store
	Leasehold exec.Cmd // this program, with the flags that name the store

	Out  *say.Output
	JSON bool

	key, target leasehold.Key // the lock of key guards the item with the key target
	item        protocol.Item // the key attributes of target
	began       time.Time     // the time of the first grant
	err         error         // first error; after it all later steps do nothing
}

// Step is a line of the demo in JSON.
type Step struct {
	ElapsedMs int64  `json:"elapsedMs"`
	Process   string `json:"process"`
	Event     string `json:"event"`
	Token     int64  `json:"token,omitempty"`
	Holder    string `json:"holder,omitempty"`
	Refused   bool   `json:"refused,omitempty"`
	Lost      bool   `json:"lost,omitempty"`
}

// Play runs the demo, and deletes the records that it has written.
func (d *Demo) Play(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	name := store.Unused("leasehold-demo/")
	d.key, d.target = d.Store.TrialKey(name, "demo"), d.Store.TrialKey(name+"/target", "demo")
	d.err = d.makeTarget(ctx)
	err := d.play(ctx)
	// Play deletes these keys even if they are still held, because no other demo uses them.
	within, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	return failure.Answer(errors.Join(err, d.Store.Delete(within, d.key, d.target)))
}

// play kills the first holder and stops the second. After a third process has taken over,
// play continues the second.
func (d *Demo) play(ctx context.Context) error {
	a := d.run(ctx, "a")
	defer a.kill()
	d.granted(ctx, a, "granted  token %d")
	b := d.run(ctx, "b")
	defer b.kill()
	d.waits(ctx, b)

	d.wait(ctx, d.Lease/2)
	d.signal(a, syscall.SIGKILL)
	killed := time.Now()
	d.say(Step{Process: a.name, Event: "killed"}, "killed (kill -9)")
	d.granted(ctx, b, "took over, token %d")
	blocked := time.Since(killed)

	c := d.run(ctx, "c")
	defer c.kill()
	d.waits(ctx, c)
	d.wait(ctx, d.Lease/2)
	d.stop(ctx, b)
	d.say(Step{Process: b.name, Event: "stopped"}, "stopped (SIGSTOP) past its lease")
	d.granted(ctx, c, "took over, token %d")

	d.wait(ctx, durations.Scale(d.Lease, 0.75))
	d.signal(b, process.ContinueSignal)
	late := Step{Process: b.name, Event: "wrote", Refused: d.write(ctx, b.token), Lost: d.next(ctx, b, say.Ended).ExitCode == failure.CodeLost}
	not := map[bool]string{true: "", false: "NOT "}
	d.say(late, "continued: its write was %srefused, its CMD had %sbeen stopped", not[late.Refused], not[late.Lost])
	if d.err == nil {
		_ = c.cat.Close()
		d.next(ctx, c, say.Ended)
	}
	switch {
	case d.err != nil:
		return d.err
	case !late.Refused || !late.Lost:
		return errors.New("the demo has failed: a stale holder could write, or did not notice that its lock was lost: please report this")
	case d.JSON:
		return nil
	}
	return d.summarize(blocked)
}

// run starts a process, unless there was an error.
func (d *Demo) run(ctx context.Context, name string) *run {
	r := &run{name: name, events: make(chan event)}
	if d.err == nil {
		d.err = d.start(ctx, r)
	}
	return r
}

// granted waits until the process is granted the key and has done its fenced work.
func (d *Demo) granted(ctx context.Context, r *run, format string) {
	r.token = d.next(ctx, r, string(leasehold.EventGranted)).Token
	if d.write(ctx, r.token) && d.err == nil {
		d.err = fmt.Errorf("the write of %s was refused, though it holds the key: please report this", r.name)
	}
	if d.began.IsZero() {
		d.began = time.Now()
	}
	d.say(Step{Process: r.name, Event: "granted", Token: r.token}, format, r.token)
}

// waits waits until the process waits for the key.
func (d *Demo) waits(ctx context.Context, r *run) {
	holder := cmp.Or(d.next(ctx, r, string(leasehold.EventWaiting)).Holder.Owner, "somebody")
	d.say(Step{Process: r.name, Event: "waiting", Holder: holder}, "waits for %s", holder)
}

func (d *Demo) signal(r *run, sig syscall.Signal) {
	if d.err == nil {
		d.err = r.cmd.Process.Signal(sig)
	}
}

// stop stops the process between two of its requests: a process that is stopped during a
// request to a local store keeps its file locked.
func (d *Demo) stop(ctx context.Context, r *run) {
	for d.err == nil {
		d.signal(r, process.StopSignal)
		within, cancel := context.WithTimeout(ctx, d.Lease/4)
		answers := d.answers(within)
		cancel()
		if answers {
			return
		}
		d.signal(r, process.ContinueSignal)
		d.wait(ctx, d.Lease/20)
	}
}

// summarize prints a summary.
func (d *Demo) summarize(blocked time.Duration) error {
	lasted := "one lease"
	if blocked > durations.Sum(d.Lease, time.Second) { // the machine or the table is slow
		lasted = fmt.Sprintf("%.1f s, with a lease", blocked.Seconds())
	}
	err := d.Out.Prose("A dead holder blocked the key for %s (%g s). No write of a stale holder succeeded.", lasted, d.Lease.Seconds())
	if err == nil {
		err = d.Out.Prose("Try: leasehold run hello -- sh -c 'echo $LEASEHOLD_TOKEN; sleep 30', in two terminals.")
	}
	return err
}

// say writes one line of the demo.
func (d *Demo) say(s Step, format string, args ...any) {
	elapsed := time.Since(d.began)
	switch {
	case d.err != nil:
	case d.JSON:
		s.ElapsedMs = elapsed.Milliseconds()
		_ = json.NewEncoder(d.Out).Encode(s) // the error does not matter: if no process reads the output, SIGPIPE ends the demo
	default:
		fmt.Fprintf(d.Out, "%5.1fs  %s  %s\n", elapsed.Seconds(), s.Process, fmt.Sprintf(format, args...))
	}
}

// wait waits for a duration.
func (d *Demo) wait(ctx context.Context, dt time.Duration) {
	if d.err == nil && !attempts.Wait(ctx, dt) {
		d.err = context.Cause(ctx)
	}
}

// next returns the next event of the given kind, and skips others.
func (d *Demo) next(ctx context.Context, r *run, kind string) event {
	// No step takes longer than one lease plus the delay of a slow table.
	for limit := time.After(durations.Sum(d.Lease, 30*time.Second)); d.err == nil; {
		select {
		case e := <-r.events:
			if e.Event == kind {
				return e
			}
			if e.Event == say.Ended {
				d.err = failure.Exit(failure.CodeTrouble, fmt.Errorf("process %s of the demo ended with %d: %s", r.name, e.ExitCode, e.Error))
			}
		case <-limit:
			d.err = fmt.Errorf("the demo has timed out: process %s was not %s", r.name, kind)
		case <-ctx.Done():
			d.err = context.Cause(ctx)
		}
	}
	return event{}
}

// makeTarget creates the item that the lock guards. The item is in the lock table, so it
// has the form of a lock's record. So leasehold ls can read it in any layout.
func (d *Demo) makeTarget(ctx context.Context) error {
	locks, err := d.Store.Client(leasehold.Config{Owner: "demo", Lease: d.Lease})
	if err != nil {
		return err
	}
	if d.item, err = d.Store.Proto.Key(d.target); err == nil {
		_, err = locks.Acquire(ctx, d.target.Partition, leasehold.WithSortKey(d.target.Sort), leasehold.WithoutRenewal())
	}
	return err
}

// fence is the target's attribute for the highest token that has written to the target.
const fence = "fence"

// write does the fenced work of the run with the given token. The condition makes the
// target refuse a token that is lower than one it has seen.
func (d *Demo) write(ctx context.Context, token int64) (refused bool) {
	if d.err != nil {
		return false
	}
	_, err := d.Store.Requests().UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String(d.Store.Table),
		Key:                       d.item,
		UpdateExpression:          aws.String("SET #fence = :token"),
		ConditionExpression:       aws.String("attribute_not_exists(#fence) OR #fence <= :token"),
		ExpressionAttributeNames:  map[string]string{"#fence": fence},
		ExpressionAttributeValues: protocol.Item{":token": &types.AttributeValueMemberN{Value: strconv.FormatInt(token, 10)}},
	})
	var refusal *types.ConditionalCheckFailedException
	if refused = errors.As(err, &refusal); !refused {
		d.err = err
	}
	return refused
}

// answers reports whether the table can be read. It cannot be read while a stopped process
// keeps the file of a local store locked.
func (d *Demo) answers(ctx context.Context) bool {
	_, err := d.Store.Requests().GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(d.Store.Table), Key: d.item})
	return err == nil
}

// run is one process of the demo: leasehold run with cat as its CMD. cat ends when its
// standard input is closed, at the latest at the end of the demo.
type run struct {
	name   string
	token  int64    // set by the grant
	cmd    exec.Cmd // its Process is nil if the process was not started
	cat    io.Closer
	events chan event
}

// event contains the fields of a line of --events that the demo reads.
type event struct {
	Event    string
	Token    int64
	Holder   struct{ Owner string }
	ExitCode int
	Error    string
}

// start starts leasehold run with the name of r as its owner.
func (d *Demo) start(ctx context.Context, r *run) (err error) {
	r.cmd = d.Leasehold
	cmd := &r.cmd
	cmd.Args = append([]string{"leasehold", "run", "--quiet", "--lease", d.Lease.String(), "--events", "3"}, cmd.Args...)
	if d.key.Sort != "" {
		cmd.Args = append(cmd.Args, "--sort-key", d.key.Sort)
	}
	cmd.Args = append(cmd.Args, d.key.Partition, "--", "cat")
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "LEASEHOLD_OWNER="+r.name)
	if r.cat, err = cmd.StdinPipe(); err != nil {
		return err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer ours.Close()
		for lines := json.NewDecoder(ours); ; {
			var e event
			if lines.Decode(&e) != nil {
				return
			}
			e.Holder.Owner, _, _ = strings.Cut(e.Holder.Owner, "/")
			select {
			case r.events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// kill kills the process if it still runs. Its watchdog kills cat.
func (r *run) kill() {
	if r.cmd.Process != nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
}
