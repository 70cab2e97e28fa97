// Package demo implements "leasehold demo", which shows how a lock passes from process to
// process. Each process runs "leasehold run". The first one is killed while it holds the
// lock, and the second takes over. The second is then suspended (SIGSTOP) until its lease
// has expired, and the third takes over. When the second continues, its write is refused
// because its fencing token is too low.
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

// Demo is one run of "leasehold demo".
type Demo struct {
	Lease     time.Duration
	Store     *store.Store
	Leasehold exec.Cmd // this executable, with the flags that choose the store

	Out  *say.Output
	JSON bool

	key, target leasehold.Key // key of the lock, and key of the item that the lock protects
	item        protocol.Item // key attributes of the protected item
	began       time.Time     // when the first process was granted the lock
	err         error         // first error; once it is set, all later steps do nothing
}

// Step is one line of the output of "demo --json".
type Step struct {
	ElapsedMs int64  `json:"elapsedMs"`
	Process   string `json:"process"`
	Event     string `json:"event"`
	Token     int64  `json:"token,omitempty"`
	Holder    string `json:"holder,omitempty"`
	Refused   bool   `json:"refused,omitempty"`
	Lost      bool   `json:"lost,omitempty"`
}

// Play runs the whole demo, and then deletes the records that the demo has written.
func (d *Demo) Play(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	name := store.Unused("leasehold-demo/")
	d.key, d.target = d.Store.TrialKey(name, "demo"), d.Store.TrialKey(name+"/target", "demo")
	d.err = d.makeTarget(ctx)
	err := d.play(ctx)
	// Delete the records even if a lock is still held, because their keys are random, and no other
	// process uses them.
	within, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	return failure.Answer(errors.Join(err, d.Store.Delete(within, d.key, d.target)))
}

// play runs the steps. Process a acquires the lock and is killed. Process b takes over and
// is suspended (SIGSTOP). Process c takes over, and then b continues (SIGCONT).
func (d *Demo) play(ctx context.Context) error {
	a := d.run(ctx, "a")
	defer a.kill()
	d.granted(ctx, a, "granted  token %d")
	b := d.run(ctx, "b")
	defer b.kill()
	d.untilWaiting(ctx, b)

	d.wait(ctx, d.Lease/2)
	d.signal(a, syscall.SIGKILL)
	killed := time.Now()
	d.say(Step{Process: a.name, Event: "killed"}, "killed (kill -9)")
	d.granted(ctx, b, "took over, token %d")
	blocked := time.Since(killed)

	c := d.run(ctx, "c")
	defer c.kill()
	d.untilWaiting(ctx, c)
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

// run starts a "leasehold run" process with the given name. It starts nothing if an earlier
// step has failed.
func (d *Demo) run(ctx context.Context, name string) *run {
	r := &run{name: name, events: make(chan event)}
	if d.err == nil {
		d.err = d.start(ctx, r)
	}
	return r
}

// granted waits until process r has been granted the key. It then writes to the protected item with
// the fencing token of r, and prints one line. The parameter "format" is the line's format string;
// its only argument is the token.
func (d *Demo) granted(ctx context.Context, r *run, format string) {
	r.token = d.next(ctx, r, string(leasehold.EventGranted)).Token
	if d.write(ctx, r.token) {
		d.err = fmt.Errorf("the write of %s was refused, though it holds the key: please report this", r.name)
	}
	if d.began.IsZero() {
		d.began = time.Now()
	}
	d.say(Step{Process: r.name, Event: "granted", Token: r.token}, format, r.token)
}

// untilWaiting blocks until process r reports that it waits for the key. It then prints a
// line that names the holder.
func (d *Demo) untilWaiting(ctx context.Context, r *run) {
	holder := cmp.Or(d.next(ctx, r, string(leasehold.EventWaiting)).Holder.Owner, "somebody")
	d.say(Step{Process: r.name, Event: "waiting", Holder: holder}, "waits for %s", holder)
}

func (d *Demo) signal(r *run, sig syscall.Signal) {
	if d.err == nil {
		d.err = r.cmd.Process.Signal(sig)
	}
}

// stop suspends process r (SIGSTOP). If r is suspended during a request to a local store, it keeps
// the store's file locked. So, after suspending r, stop sends a request itself. If the request
// fails, stop resumes r (SIGCONT), and suspends it again a little later.
func (d *Demo) stop(ctx context.Context, r *run) {
	for d.err == nil {
		d.signal(r, process.StopSignal)
		within, cancel := context.WithTimeout(ctx, d.Lease/4)
		_, err := d.Store.Requests().GetItem(within, &dynamodb.GetItemInput{TableName: aws.String(d.Store.Table), Key: d.item})
		cancel()
		if err == nil {
			return
		}
		d.signal(r, process.ContinueSignal)
		d.wait(ctx, d.Lease/20)
	}
}

// summarize prints the last lines of the demo: how long the dead holder blocked the key,
// and a command to try next.
func (d *Demo) summarize(blocked time.Duration) error {
	lasted := "one lease"
	if blocked > durations.Sum(d.Lease, time.Second) { // longer than expected, because the machine or the table is slow
		lasted = fmt.Sprintf("%.1f s, with a lease", blocked.Seconds())
	}
	return errors.Join(d.Out.Prose("A dead holder blocked the key for %s (%g s). No write of a stale holder succeeded.", lasted, d.Lease.Seconds()),
		d.Out.Prose("Try: leasehold run hello -- sh -c 'echo $LEASEHOLD_TOKEN; sleep 30', in two terminals."))
}

// say prints one line of the demo, as text or as JSON. It prints nothing after a failed
// step.
func (d *Demo) say(s Step, format string, args ...any) {
	elapsed := time.Since(d.began)
	switch {
	case d.err != nil:
	case d.JSON:
		s.ElapsedMs = elapsed.Milliseconds()
		_ = json.NewEncoder(d.Out).Encode(s) // ignored: the demo goes on to its end, even if no process reads the output
	default:
		fmt.Fprintf(d.Out, "%5.1fs  %s  %s\n", elapsed.Seconds(), s.Process, fmt.Sprintf(format, args...))
	}
}

// wait pauses the demo for the duration dt. After a failed step it returns immediately.
func (d *Demo) wait(ctx context.Context, dt time.Duration) {
	if d.err == nil && !attempts.Wait(ctx, dt) {
		d.err = context.Cause(ctx)
	}
}

// next waits for the next event of process r with the given kind, and returns it. Until
// then, it drops events of other kinds.
func (d *Demo) next(ctx context.Context, r *run, kind string) event {
	// Every step takes at most the length of a lease, plus up to 30 seconds if the table is slow.
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

// makeTarget creates the item that the lock protects. It writes the item as a lock record,
// because "leasehold ls" reports all other items in a lock table as damaged.
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

// write writes to the protected item with the given fencing token. The item's attribute "fence"
// stores the highest token of all writes. The result "refused" is true if DynamoDB refused the
// write because an earlier write had a higher token.
func (d *Demo) write(ctx context.Context, token int64) (refused bool) {
	if d.err != nil {
		return false
	}
	_, err := d.Store.Requests().UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String(d.Store.Table),
		Key:                       d.item,
		UpdateExpression:          aws.String("SET #fence = :token"),
		ConditionExpression:       aws.String("attribute_not_exists(#fence) OR #fence <= :token"),
		ExpressionAttributeNames:  map[string]string{"#fence": "fence"},
		ExpressionAttributeValues: protocol.Item{":token": &types.AttributeValueMemberN{Value: strconv.FormatInt(token, 10)}},
	})
	if refused = errors.As(err, new(*types.ConditionalCheckFailedException)); !refused {
		d.err = err
	}
	return refused
}

// run is one process of the demo: "leasehold run" with cat(1) as its CMD. cat(1) reads a pipe. The
// field "cat" is the demo's end of this pipe. cat(1) exits when the demo closes its end or exits.
type run struct {
	name   string
	token  int64    // fencing token; zero until the lock was granted
	cmd    exec.Cmd // cmd.Process is nil if the process was not started
	cat    io.Closer
	events chan event
}

// event contains those fields of an event line (see --events) that the demo reads.
type event struct {
	Event    string
	Token    int64
	Holder   struct{ Owner string }
	ExitCode int
	Error    string
}

// start starts "leasehold run" for r, with the owner name r.name.
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

// kill kills process r, if it was started. The watchdog of r then kills cat.
func (r *run) kill() {
	if r.cmd.Process != nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
}
