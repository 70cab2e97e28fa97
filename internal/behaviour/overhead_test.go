//go:build unix && !race

// The race detector allocates memory itself, so this file is not built when the detector is
// enabled. The tests run only on Unix, where Getrusage reports the CPU time of a process.

package behaviour_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// The type "beside" has the methods lock and twoWrites. Their costs differ only by the cost of
// leasehold: both send the same two writes over loopback to a server that repeats recorded replies.
// The method twoWrites uses the SDK alone.
type beside struct {
	client *leasehold.Client
	bare   *dynamodb.Client            // SDK client for the two writes without leasehold
	writes []*dynamodb.UpdateItemInput // inputs of the two writes
}

// recorder is a DB that records the client's writes. It also records each reply, encoded as a
// server sends it.
type recorder struct {
	*dynamodb.Client
	engine  *localdynamo.Engine
	writes  []*dynamodb.UpdateItemInput
	replies [][]byte
}

func (r *recorder) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.writes = append(r.writes, in)
	return r.Client.UpdateItem(ctx, in, opts...)
}

// Do sends a request of the SDK to the engine, and records the reply.
func (r *recorder) Do(req *http.Request) (*http.Response, error) {
	res, err := r.engine.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	reply, err := httputil.DumpResponse(res, true)
	r.replies = append(r.replies, reply)
	return res, err
}

// repeat answers each request on a connection with the next of the given replies. After the last
// reply it starts again with the first reply.
func repeat(conn net.Conn, replies [][]byte) error {
	requests := bufio.NewReader(conn)
	for n := 0; ; n++ {
		length := 0
		for {
			line, err := requests.ReadSlice('\n')
			if err != nil {
				return err
			}
			if line = bytes.TrimSpace(line); len(line) == 0 {
				break
			}
			if digits, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				for _, c := range digits {
					length = 10*length + int(c-'0')
				}
			}
		}
		if _, err := requests.Discard(length); err != nil {
			return err
		}
		if _, err := conn.Write(replies[n%len(replies)]); err != nil {
			return err
		}
	}
}

func newBeside(tb testing.TB) *beside {
	tb.Helper()
	engine := localdynamo.New()
	defer func() { _ = engine.Close() }()
	lab.OK(tb, table.Create(tb.Context(), engine.Client(), table.Spec{Name: "locks"}))
	record := &recorder{engine: engine}
	record.Client = engine.Client(func(o *dynamodb.Options) { o.HTTPClient = record })
	open := func(db leasehold.DB) *beside {
		c := lab.Must(leasehold.New(db, leasehold.Config{Table: "locks", Logger: slog.New(slog.DiscardHandler)}))(tb)
		tb.Cleanup(func() { _ = c.Close(context.WithoutCancel(tb.Context())) })
		return &beside{client: c, writes: record.writes}
	}
	lab.OK(tb, open(record).lock(tb.Context()))
	server := lab.Must((&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0"))(tb)
	tb.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			tb.Cleanup(func() { _ = conn.Close() })
			go func() { _ = repeat(conn, record.replies) }()
		}
	}()
	bare := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(fmt.Sprintf("http://%s", server.Addr())),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	b := open(bare)
	b.bare = bare
	return b
}

// lock acquires and releases one key with the client.
func (b *beside) lock(ctx context.Context) error {
	l, err := b.client.Acquire(ctx, "job")
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

// twoWrites sends the two recorded writes with the SDK alone.
func (b *beside) twoWrites(ctx context.Context) error {
	for _, in := range b.writes {
		if _, err := b.bare.UpdateItem(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// processorTime returns the CPU time that this process has used so far. The result includes the
// time that the garbage collector and the server have used.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	lab.OK(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkLockComparedToTwoPlainWrites alternates between the methods "lock" and "twoWrites", so
// that other load on the machine affects both in the same way.
func BenchmarkLockComparedToTwoPlainWrites(b *testing.B) {
	const turn = 50
	both := newBeside(b)
	var used [2]time.Duration
	for b.Loop() {
		for i, do := range []func(context.Context) error{both.lock, both.twoWrites} {
			began := processorTime(b)
			for range turn {
				if err := do(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			used[i] += processorTime(b) - began
		}
	}
	of := func(i int) float64 { return float64(used[i].Nanoseconds()) / float64(turn*b.N) }
	b.ReportMetric(of(0), "cpu-ns/lock")
	b.ReportMetric(of(1), "cpu-ns/bare")
	b.ReportMetric(of(0)/of(1), "ratio")
}

// The test divides the allocations of one Acquire and Release by the allocations of two writes with
// the SDK alone. The ratio is the same on every machine. It varies a little only when the SDK drops
// a connection.
func TestLockingAllocatesAtMost25PercentMoreThanTwoPlainWrites(t *testing.T) {
	const most = 1.25
	both := newBeside(t)
	allocations := func(do func(context.Context) error) float64 {
		return testing.AllocsPerRun(500, func() {
			if err := do(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	lock, bare := allocations(both.lock), allocations(both.twoWrites)
	if lock > most*bare {
		t.Errorf("%.0f allocations, and %.0f of two bare writes: %.2f times as many, at most %.2f", lock, bare, lock/bare, most)
	}
	t.Logf("%.0f allocations, and %.0f of two bare writes: %.2f times as many", lock, bare, lock/bare)
}
