package localdynamo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// underWay counts the bytes that the engine has read from the bodies of requests in flight. The
// field "now" is the current count, and "most" is the highest count so far.
type underWay struct{ now, most atomic.Int64 }

func (u *underWay) add(n int) {
	now := u.now.Add(int64(n))
	most := u.most.Load()
	for now > most && !u.most.CompareAndSwap(most, now) {
		most = u.most.Load()
	}
}

// slow is a request body that arrives slowly: each part takes a tenth of a second. It
// consists of spaces, and ends with an empty JSON object.
type slow struct {
	*underWay
	rest  string
	given int
	half  int           // length of half the body
	err   error         // error that Read returns after the first half; nil for none
	held  chan struct{} // the second half arrives once this channel is closed; nil for no delay
}

const slowPart = 32 << 10

func newSlow(u *underWay, size int) *slow {
	return &slow{underWay: u, rest: strings.Repeat(" ", size-2) + "{}", half: size / 2}
}

func (s *slow) Read(b []byte) (int, error) {
	switch {
	case s.rest == "":
		return 0, io.EOF
	case s.err != nil && s.given > s.half:
		return 0, s.err
	case s.held != nil && s.given > s.half:
		<-s.held
	}
	time.Sleep(100 * time.Millisecond)
	n := copy(b, s.rest[:min(slowPart, len(s.rest))])
	s.rest = s.rest[n:]
	s.given += n
	s.add(n)
	return n, nil
}

// post sends the body, and returns the status and the body of the reply.
func (s *slow) post(ctx context.Context, e *Engine, length int64) (int, string) {
	w := serve(e, "ListTables", s, ofLength(length), func(r *http.Request) { *r = *r.WithContext(ctx) })
	s.add(-s.given)
	return w.Code, w.Body.String()
}

// In these tests, the engine can hold four large bodies at a time. In production, it can hold
// four bodies of the maximum size.
const (
	large    = 200 << 10
	fourRoom = 4 * large
)

func withRoom(t *testing.T, most int64) (*Engine, *underWay) {
	e := seededEngine(t)
	e.bodies = newBodies(most)
	return e, &underWay{}
}

func TestEngineLimitsMemoryOfRequestBodies(t *testing.T) {
	if maxLarge < maxBody {
		t.Fatal("no room for the largest body")
	}
	for name, tc := range map[string]struct{ length, room int64 }{
		// A body in chunks does not state its length. So the engine reserves the space of the
		// largest allowed body for it.
		"with Content-Length": {large, fourRoom}, "chunked": {-1, 4 * maxBody},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, u := withRoom(t, tc.room)
				const clients = 16
				var all sync.WaitGroup
				for range clients {
					all.Go(func() {
						status, said := newSlow(u, large).post(t.Context(), e, tc.length)
						same(t, "status of "+said, status, http.StatusOK)
					})
				}
				all.Wait()
				// The engine has space for only four large bodies at a time. From each of the other
				// clients, it has read at most one byte more than smallBody.
				if most, bound := u.most.Load(), int64(fourRoom+(clients-4)*(smallBody+1)); most > bound || most < large {
					t.Errorf("%d bytes were in memory at once, want at most %d", most, bound)
				}
			})
		})
	}
}

func TestSlowLargeRequestsDoNotDelaySmallRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, u := withRoom(t, fourRoom)
		var all sync.WaitGroup
		held := make(chan struct{})
		for range 16 {
			all.Go(func() {
				s := newSlow(u, large)
				s.held = held
				s.post(t.Context(), e, large)
			})
		}
		time.Sleep(largePatience / 2) // wait until four bodies occupy all the space
		began := time.Now()
		for _, length := range []int64{2, -1} {
			replied(t, "a small request", send(e, "ListTables", "{}", ofLength(length)), http.StatusOK)
			same(t, "delay of a small request", time.Since(began), 0)
		}
		same(t, "memory is free", e.bodies.room.TryAcquire(1), false)
		close(held)
		all.Wait()
	})
}

func TestLargeRequestGetsRetryableErrorIfMemoryIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, u := withRoom(t, fourRoom)
		ok(t, e.bodies.room.Acquire(t.Context(), fourRoom))
		began := time.Now()
		status, said := newSlow(u, large).post(t.Context(), e, large)
		if status != http.StatusInternalServerError || !strings.Contains(said, "try again") || time.Since(began) > largePatience+2*time.Second {
			t.Errorf("after %v: %d %s", time.Since(began), status, said)
		}
	})
}

// A request that ends early must free the memory that it has reserved for its body. So no memory
// may be reserved at the end of the test.
func TestInterruptedRequestReleasesBodyMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, u := withRoom(t, 2*maxBody)
		var all sync.WaitGroup
		blocked := make(chan struct{})
		all.Go(func() { // occupies all the space for a second
			_ = e.bodies.room.Acquire(t.Context(), 2*maxBody)
			<-blocked
			e.bodies.room.Release(2 * maxBody)
		})
		time.AfterFunc(time.Second, func() { close(blocked) })
		for range 6 { // some requests end while they send the body, and some while they wait for space
			all.Go(func() {
				s := newSlow(u, large)
				s.err = io.ErrUnexpectedEOF
				status, said := s.post(t.Context(), e, large)
				same(t, "status of a request that was cut off: "+said, status, http.StatusBadRequest)
			})
			all.Go(func() { newSlow(u, large-1).post(t.Context(), e, large) }) // the body is shorter than its Content-Length
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				newSlow(u, large).post(ctx, e, large)
			})
		}
		all.Wait()
		same(t, "memory that a request reserved is free", e.bodies.room.TryAcquire(2*maxBody), true)
		same(t, "the turn is free", e.bodies.turn.TryAcquire(1), true)
	})
}

func TestEngineReadsAtMostOneByteOverBodyLimit(t *testing.T) {
	for length, most := range map[int64]int64{maxBody + slowPart: 0, -1: maxBody + 1} {
		synctest.Test(t, func(t *testing.T) {
			e, u := withRoom(t, maxBody)
			status, said := newSlow(u, maxBody+slowPart).post(t.Context(), e, length)
			if status != http.StatusRequestEntityTooLarge || u.most.Load() > most {
				t.Errorf("%d %s, %d bytes were read", status, said, u.most.Load())
			}
			same(t, "memory that the request reserved is free", e.bodies.room.TryAcquire(maxBody), true)
		})
	}
}

func TestClientReceivesErrorForTooLargeBody(t *testing.T) {
	const longer = maxBody + 4<<20
	spaces := strings.Repeat(" ", longer)
	for name, tc := range map[string]struct{ head, body string }{
		"with Content-Length":      {fmt.Sprintf("Content-Length: %d", longer), spaces},
		"chunked":                  {"Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", longer, spaces)},
		"with huge Content-Length": {"Content-Length: 1000000000000", spaces},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(seededEngine(t))
			defer server.Close()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			ok(t, err)
			defer conn.Close()
			// This client reads nothing until it has sent the whole request.
			const head = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n"
			_, err = io.WriteString(conn, head+tc.head+"\r\n\r\n"+tc.body)
			ok(t, err)
			reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
			ok(t, err)
			defer reply.Body.Close()
			said, err := io.ReadAll(reply.Body)
			if err != nil || reply.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(said), "larger than 16 MB") {
				t.Errorf("%d %.200s, %v", reply.StatusCode, said, err)
			}
		})
	}
}
