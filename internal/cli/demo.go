package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/scratch"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/layout"
)

// Each process of the demo is named by one letter.
const (
	minClients = 3
	maxClients = 26
)

// demoLease is short, to keep the demo short.
const demoLease = 2 * time.Second

type demoFlags struct {
	clients int
	lease   time.Duration
}

func (a *app) newDemo() *cobra.Command {
	f := demoFlags{lease: demoLease}
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Watch a lock change hands on this machine",
		Long: `Watch processes compete for one lock. One of them is killed with kill -9, and
one is stopped past its lease and then continued. Shows who holds the lock, with
which token, and how the late write of the stopped process is refused. Takes
about 8 seconds and needs no AWS.`,
		Example: `  leasehold demo
  leasehold demo --table locks      # the same on your table`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.clients < minClients || f.clients > maxClients {
				return usageOf(cmd, "-c %d: use %d to %d", f.clients, minClients, maxClients)
			}
			if runtime.GOOS == "windows" {
				return misuse.Errorf("the demo does not run on Windows, which cannot stop and continue a process")
			}
			return a.demo(cmd, f)
		},
	}
	cmd.Flags().IntVarP(&f.clients, "clients", "c", minClients, "run `N` processes")
	cmd.Flags().VarP(durationFlag{d: &f.lease, min: time.Second}, "lease", "l", "lease `DURATION`")
	return cmd
}

// demo is one run of the demo.
type demo struct {
	app       *app
	lease     time.Duration
	began     time.Time
	processes []*demoProcess
	events    chan demoEvent
}

func (a *app) demo(cmd *cobra.Command, f demoFlags) error {
	l, proto, err := a.chooseProtocol(cmd)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("lease") { // the skew that the layout allows for shortens trust
		f.lease += proto.Skew()
	}
	where, clean, err := a.demoPlace(l)
	if err != nil {
		return err
	}
	defer clean()
	ctx, done := a.untilSignal(cmd.Context())
	defer done()

	key := scratch.Random("leasehold-demo/")
	d := &demo{app: a, lease: f.lease, events: make(chan demoEvent)}
	defer d.end()
	for i := range f.clients {
		args := append([]string{"demo-process", string(rune('a' + i)), key, "--lease", f.lease.String()}, where...)
		p, err := d.start(args)
		if err != nil {
			return err
		}
		d.processes = append(d.processes, p)
	}
	if err := d.play(ctx); err != nil {
		return failure.Answer(err)
	}
	return nil
}

// demoPlace returns the flags that name the table: the user's flags or, if there
// are none, a temporary store. clean removes that store.
func (a *app) demoPlace(l layout.Layout) (flags []string, clean func(), err error) {
	f := a.flags
	written := []string{"--layout", l.Name()}
	if attr := f.Attributes.String(); attr != "" {
		written = append(written, "--attr", attr)
	}
	if f.File == "" && f.Table == "" && f.AWSFlag() == "" {
		dir, err := os.MkdirTemp("", "leasehold-demo-")
		if err != nil {
			return nil, nil, err
		}
		file, clean := filepath.Join(dir, store.DefaultFile), func() { _ = os.RemoveAll(dir) }
		if _, err := f.MakeFile(file); err != nil {
			clean()
			return nil, nil, err
		}
		return append(written, "--file", file), clean, nil
	}
	if f.File != "" {
		if err := a.makeNamed(f.File); err != nil {
			return nil, nil, err
		}
	}
	for _, pair := range [][2]string{
		{"--table", f.Table}, {"--file", f.File}, {"--region", f.Region}, {"--profile", f.Profile}, {"--endpoint-url", f.Endpoint},
	} {
		if pair[1] != "" {
			flags = append(flags, pair[0], pair[1])
		}
	}
	return append(flags, written...), func() {}, nil
}

// play runs the demo: one holder is killed; the next is stopped, and continued
// after a third has taken over.
func (d *demo) play(ctx context.Context) error {
	for range d.processes {
		if _, err := d.next(ctx, demoReady); err != nil {
			return err
		}
	}
	first, second := d.processes[0], d.processes[1]
	first.tell(demoAcquire)
	granted, err := d.next(ctx, demoGranted)
	if err != nil {
		return err
	}
	d.began = time.Now()
	d.say(demoEvent{Process: first.name, Event: demoGranted, Token: granted.Token}, "granted  token %d", granted.Token)
	second.tell(demoAcquire)
	waits, err := d.next(ctx, demoWaiting)
	if err != nil {
		return err
	}
	d.say(waits, "waits for %s", waits.Holder)

	if !attempts.Wait(ctx, d.lease/2-time.Since(d.began)) {
		return context.Cause(ctx)
	}
	first.child.Signal(syscall.SIGKILL)
	killed := time.Now()
	d.say(demoEvent{Process: first.name, Event: "killed"}, "killed (kill -9)")
	granted, err = d.next(ctx, demoGranted)
	if err != nil {
		return err
	}
	blocked := time.Since(killed)
	d.say(granted, "took over, token %d", granted.Token)

	for _, p := range d.processes[2:] {
		p.tell(demoAcquire)
		if _, err := d.next(ctx, demoWaiting); err != nil {
			return err
		}
	}
	if !attempts.Wait(ctx, d.lease/2) {
		return context.Cause(ctx)
	}
	second.tell(demoStop)
	if _, err := d.next(ctx, demoStopping); err != nil {
		return err
	}
	d.say(demoEvent{Process: second.name, Event: "stopped"}, "stopped (SIGSTOP) past its lease")
	granted, err = d.next(ctx, demoGranted)
	if err != nil {
		return err
	}
	d.say(granted, "took over, token %d", granted.Token)

	if !attempts.Wait(ctx, d.lease*3/4) {
		return context.Cause(ctx)
	}
	second.tell(demoWrite) // it reads this once it is continued
	second.child.Signal(process.ContinueSignal)
	wrote, err := d.next(ctx, demoWrote)
	if err != nil {
		return err
	}
	d.say(wrote, "continued: its write was %s, its context had %sended", map[bool]string{true: "refused", false: "NOT refused"}[wrote.Refused],
		map[bool]string{true: "", false: "NOT "}[wrote.Lost])
	last := d.byName(granted.Process)
	for _, p := range d.processes {
		if p != last { // a survivor would be granted the key, and write after the clean-up
			p.child.Signal(syscall.SIGKILL)
		}
	}
	last.tell(demoClean)
	if _, err := d.next(ctx, demoCleaned); err != nil {
		return err
	}
	return d.summarize(blocked, wrote)
}

// summarize writes the result of the demo.
func (d *demo) summarize(blocked time.Duration, wrote demoEvent) error {
	if !wrote.Refused || !wrote.Lost {
		return errors.New("the demo has failed: a stale holder could write, or did not notice that its lock was lost: please report this")
	}
	if d.app.flags.json {
		return nil
	}
	lasted := "one lease"
	if blocked > d.lease+time.Second { // a slow machine or table
		lasted = fmt.Sprintf("%.1f s, with a lease", blocked.Seconds())
	}
	err := d.app.Stdout.Prose("A dead holder blocked the key for %s (%g s). No write of a stale holder succeeded.", lasted, d.lease.Seconds())
	if err == nil {
		err = d.app.Stdout.Prose("Try: leasehold run hello -- sh -c 'echo $LEASEHOLD_TOKEN; sleep 30', in two terminals.")
	}
	return err
}

// say writes one line of the demo.
func (d *demo) say(e demoEvent, format string, args ...any) {
	elapsed := time.Since(d.began)
	if d.app.flags.json {
		ms := elapsed.Milliseconds()
		e.ElapsedMs = &ms
		_ = json.NewEncoder(d.app.Stdout).Encode(e) // SIGPIPE ends the demo if nobody reads
		return
	}
	fmt.Fprintf(d.app.Stdout, "%5.1fs  %s  %s\n", elapsed.Seconds(), e.Process, fmt.Sprintf(format, args...))
}

// next returns the next event of that kind, and skips others.
func (d *demo) next(ctx context.Context, kind string) (demoEvent, error) {
	// No step takes longer than one lease, plus the time of a slow table.
	limit := time.NewTimer(d.lease + 30*time.Second)
	defer limit.Stop()
	for {
		select {
		case e := <-d.events:
			switch e.Event {
			case kind:
				return e, nil
			case demoFailed:
				return e, failure.Exit(failure.CodeTrouble, fmt.Errorf("process %s of the demo: %s", e.Process, e.Error))
			}
		case <-limit.C:
			return demoEvent{}, fmt.Errorf("the demo has timed out: no process became %s", kind)
		case <-ctx.Done():
			return demoEvent{}, context.Cause(ctx)
		}
	}
}

func (d *demo) byName(name string) *demoProcess {
	for _, p := range d.processes {
		if p.name == name {
			return p
		}
	}
	return d.processes[0]
}

// end kills the processes that still run.
func (d *demo) end() {
	go func() { // no process must block on sending an event
		for range d.events {
		}
	}()
	for _, p := range d.processes {
		p.end()
	}
	close(d.events)
}
