// Package demo shows a lock change hands: it starts processes of this program that contend
// for one key, has one die and another sleep past its lease, and tells what they say.
//
//	Demo ── orders ──► Process    on its standard input: acquire, stop, write, clean
//	     ◄─ events ───            on its standard output, one a line
//
// The Demo alone decides what happens when, so that it plays the same each time. A process
// that hears no more ends.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/scratch"
)

// Each process is named by one letter, and three have a part.
const (
	MinClients = 3
	MaxClients = 26
)

// Demo is one run.
type Demo struct {
	Clients int
	Lease   time.Duration

	Process exec.Cmd // this program, with the flags that name the table

	Out  *say.Output
	JSON bool

	contenders []*contender
	events     chan Event
	began      time.Time // with the first grant
	err        error     // what ended it: all that follows does nothing
}

// Run starts the processes, plays, and ends them.
func (d *Demo) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.events = make(chan Event)
	key := scratch.Random("leasehold-demo/")
	for i := range d.Clients {
		c, err := d.start(ctx, string(rune('a'+i)), key)
		if err != nil {
			return err
		}
		defer c.end()
		d.contenders = append(d.contenders, c)
	}
	return failure.Answer(d.play(ctx))
}

// play has one holder killed; the next is stopped, and continued after a third has taken
// over.
func (d *Demo) play(ctx context.Context) error {
	for range d.contenders {
		d.next(ctx, ready)
	}
	first, second := d.contenders[0], d.contenders[1]
	first.tell(acquire)
	got := d.next(ctx, granted)
	d.began = time.Now()
	d.say(got, "granted  token %d", got.Token)
	second.tell(acquire)
	waits := d.next(ctx, waiting)
	d.say(waits, "waits for %s", waits.Holder)

	d.wait(ctx, d.Lease/2-time.Since(d.began))
	first.child.Signal(syscall.SIGKILL)
	killed := time.Now()
	d.say(Event{Process: first.name, Event: "killed"}, "killed (kill -9)")
	got = d.next(ctx, granted)
	blocked := time.Since(killed)
	d.say(got, "took over, token %d", got.Token)

	for _, c := range d.contenders[2:] {
		c.tell(acquire)
		d.next(ctx, waiting)
	}
	d.wait(ctx, d.Lease/2)
	second.tell(stop)
	d.next(ctx, stopping)
	d.say(Event{Process: second.name, Event: "stopped"}, "stopped (SIGSTOP) past its lease")
	got = d.next(ctx, granted)
	d.say(got, "took over, token %d", got.Token)

	d.wait(ctx, d.Lease*3/4)
	second.tell(write) // it reads this once it is continued
	second.child.Signal(process.ContinueSignal)
	late := d.next(ctx, wrote)
	d.say(late, "continued: its write was %s, its context had %sended", map[bool]string{true: "refused", false: "NOT refused"}[late.Refused],
		map[bool]string{true: "", false: "NOT "}[late.Lost])
	for _, c := range d.contenders {
		if c.name == got.Process {
			c.tell(clean)
		} else { // a survivor would be granted the key, and write after the clean-up
			c.child.Signal(syscall.SIGKILL)
		}
	}
	d.next(ctx, cleaned)
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

// summarize says what was seen.
func (d *Demo) summarize(blocked time.Duration) error {
	lasted := "one lease"
	if blocked > d.Lease+time.Second { // a slow machine or table
		lasted = fmt.Sprintf("%.1f s, with a lease", blocked.Seconds())
	}
	err := d.Out.Prose("A dead holder blocked the key for %s (%g s). No write of a stale holder succeeded.", lasted, d.Lease.Seconds())
	if err == nil {
		err = d.Out.Prose("Try: leasehold run hello -- sh -c 'echo $LEASEHOLD_TOKEN; sleep 30', in two terminals.")
	}
	return err
}

// say writes one line of the demo.
func (d *Demo) say(e Event, format string, args ...any) {
	elapsed := time.Since(d.began)
	switch {
	case d.err != nil:
	case d.JSON:
		ms := elapsed.Milliseconds()
		e.ElapsedMs = &ms
		_ = json.NewEncoder(d.Out).Encode(e) // SIGPIPE ends the demo if nobody reads
	default:
		fmt.Fprintf(d.Out, "%5.1fs  %s  %s\n", elapsed.Seconds(), e.Process, fmt.Sprintf(format, args...))
	}
}

// wait lets time go by.
func (d *Demo) wait(ctx context.Context, dt time.Duration) {
	if d.err == nil && !attempts.Wait(ctx, dt) {
		d.err = context.Cause(ctx)
	}
}

// next returns the next event of that kind, and skips others.
func (d *Demo) next(ctx context.Context, kind string) Event {
	// No step takes longer than one lease, plus the time of a slow table.
	for limit := time.After(d.Lease + 30*time.Second); d.err == nil; {
		select {
		case e := <-d.events:
			switch e.Event {
			case kind:
				return e
			case failed:
				d.err = failure.Exit(failure.CodeTrouble, fmt.Errorf("process %s of the demo: %s", e.Process, e.Error))
			}
		case <-limit:
			d.err = fmt.Errorf("the demo has timed out: no process became %s", kind)
		case <-ctx.Done():
			d.err = context.Cause(ctx)
		}
	}
	return Event{}
}
