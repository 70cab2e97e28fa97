//go:build linux

package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/process"
)

// Driver is a running process that executes requests with a peer's lock library. Its
// methods are safe for concurrent use.
type Driver struct {
	Peer Peer

	settings Settings // settings of the driver's clients

	process *process.Process
	stdin   io.WriteCloser
	printed *process.Tail
	read    chan struct{} // closed when the driver's output has been read to its end

	mu      sync.Mutex      // guards the following fields; not locked while a goroutine writes a request line
	last    int64           // ID of the last request
	pending map[int64]*Call // requests without a reply, by ID; nil after the driver has ended

	writing chan struct{} // semaphore: contains an element while a goroutine writes a request line
}

// Call is a request that was sent to a driver. When the reply arrives, it is stored in the
// Call.
type Call struct {
	ID int64

	driver *Driver
	do     string
	done   chan struct{}
	reply  Reply // valid once done is closed
}

// Start starts a driver of the peer, and its first client with the settings s. The clients use the
// DynamoDB server at endpoint. Cancelling ctx stops only the installation and the wait for the
// client. The driver ends when [Driver.Kill] is called or this process ends.
func Start(ctx context.Context, p Peer, endpoint string, s Settings) (*Driver, error) {
	cmd, err := p.command(ctx)
	if err != nil {
		return nil, err
	}
	// The pipe is from os.Pipe. A pipe from StdoutPipe would be closed by exec.Cmd.Wait
	// when the driver ends, even if some answers have not been read yet.
	answers, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	d := &Driver{
		Peer: p, settings: s, printed: &process.Tail{}, read: make(chan struct{}),
		pending: map[int64]*Call{}, writing: make(chan struct{}, 1),
	}
	cmd.Stdout, cmd.Stderr = stdout, d.printed
	cmd.Env = environment(endpoint)
	if d.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	d.process, err = process.Start(cmd)
	_ = stdout.Close() // the driver's process has inherited a copy
	if err != nil {
		_ = answers.Close()
		return nil, fmt.Errorf("peers: start %s: %w", p.Name, err)
	}
	go d.readAnswers(answers)
	call := d.send("open", s.line)
	if _, err := call.Reply(ctx); err != nil {
		_ = d.Kill()
		return nil, err
	}
	return d, nil
}

// Open makes another client of the library in the driver's process, with the settings of the
// first client. It returns the number of the client, for [Request.Client].
func (d *Driver) Open(ctx context.Context) (client int64, err error) {
	call := d.send("open", d.settings.line)
	_, err = call.Reply(ctx)
	return call.ID, err
}

// Send sends a request and returns without waiting for the reply.
func (d *Driver) Send(r Request) *Call { return d.send(r.Do, r.line) }

// Do sends a request and waits for its reply.
func (d *Driver) Do(ctx context.Context, r Request) (Reply, error) { return d.Send(r).Reply(ctx) }

// Kill ends the driver's process with SIGKILL. A second call has no effect.
func (d *Driver) Kill() error {
	err := d.process.Kill()
	_ = d.stdin.Close()
	<-d.read
	return err
}

// Stop suspends all threads of the driver's process (SIGSTOP) until Continue is called.
func (d *Driver) Stop() error { return d.process.Stop() }

// Continue resumes a driver that Stop has suspended.
func (d *Driver) Continue() error { return d.process.Continue() }

// PID returns the driver's process ID.
func (d *Driver) PID() int { return d.process.PID() }

// Done returns a channel that is closed when the reply has arrived, or when the driver has
// ended.
func (c *Call) Done() <-chan struct{} { return c.done }

// Reply waits for the reply. It returns an *Error if the driver replied with an error. If
// the driver ended before it replied, Reply returns ErrEnded with the driver's last output.
func (c *Call) Reply(ctx context.Context) (Reply, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return Reply{}, fmt.Errorf("peers: %s: no answer to %s: %w; it printed\n%s", c.driver.Peer.Name, c.do, context.Cause(ctx), c.driver.printed)
	}
	switch {
	case c.reply.Error != nil:
		return c.reply, c.reply.Error
	case c.reply.ID == 0:
		return Reply{}, fmt.Errorf("%w: %s, before it answered %s; it printed\n%s", ErrEnded, c.driver.Peer.Name, c.do, c.driver.printed)
	}
	return c.reply, nil
}

func (d *Driver) send(do string, line func(id int64) any) *Call {
	c := &Call{driver: d, do: do, done: make(chan struct{})}
	d.mu.Lock()
	if d.pending == nil { // the driver has ended
		d.mu.Unlock()
		close(c.done)
		return c
	}
	d.last++
	c.ID = d.last
	d.pending[c.ID] = c
	d.mu.Unlock()
	b, err := json.Marshal(line(c.ID))
	if err != nil {
		d.answer(Reply{ID: c.ID, Error: &Error{Kind: "failed", Message: err.Error()}})
		return c
	}
	d.writing <- struct{}{}
	_, _ = d.stdin.Write(append(b, '\n')) // the error is ignored: if the write fails, the driver has ended
	<-d.writing
	return c
}

// readAnswers passes each answer of the driver to the Call with the same ID. When the driver
// ends, readAnswers closes the channel of each Call that has no answer.
func (d *Driver) readAnswers(answers io.ReadCloser) {
	defer close(d.read)
	defer answers.Close()
	lines := bufio.NewReader(answers)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		reply := Reply{At: time.Now()}
		if err := json.Unmarshal(line, &reply); err != nil {
			_, _ = fmt.Fprintf(d.printed, "\nnot an answer: %q: %v\n", line, err)
			continue
		}
		d.answer(reply)
	}
	d.mu.Lock()
	unanswered := d.pending
	d.pending = nil
	d.mu.Unlock()
	for _, c := range unanswered {
		close(c.done)
	}
}

func (d *Driver) answer(r Reply) {
	d.mu.Lock()
	c := d.pending[r.ID]
	delete(d.pending, r.ID)
	d.mu.Unlock()
	if c == nil {
		_, _ = fmt.Fprintf(d.printed, "\nan answer to nothing: %d\n", r.ID)
		return
	}
	if r.Error != nil {
		r.Error.Peer, r.Error.Do = d.Peer.Name, c.do
	}
	c.reply = r
	close(c.done)
}

// environment returns the environment of a driver. It sets the variables that every AWS SDK
// reads, and omits the AWS variables of the user.
func environment(endpoint string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_") })
	return append(env,
		"AWS_ENDPOINT_URL_DYNAMODB="+endpoint, "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
		"AWS_REGION=us-west-2", "AWS_DEFAULT_REGION=us-west-2", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
}
