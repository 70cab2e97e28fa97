package load

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// server is the embedded engine behind an HTTP server. While hangs is true, the server does
// not answer.
type server struct {
	*httptest.Server
	hangs atomic.Bool
	conns atomic.Int64 // number of connections that clients have opened
}

func listen(t *testing.T) *server {
	t.Helper()
	engine := localdynamo.New()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.hangs.Load() {
			_, _ = io.Copy(io.Discard, r.Body) // net/http notices that the client has disconnected only after the body has been read
			<-r.Context().Done()
			return
		}
		engine.ServeHTTP(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(func() {
		s.Close()
		_ = engine.Close() // ignores errors, because the engine stores its data only in memory
	})
	return s
}

// descriptors returns how many files and sockets this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	return len(lab.Must(os.ReadDir("/proc/self/fd"))(t))
}

func TestAcquireReleaseCyclesDoNotLeakSockets(t *testing.T) {
	n := max(count(t, "LEASEHOLD_CYCLES", 100_000, 50)/50, 200)
	s := listen(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	db := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: &s.URL, HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	})
	lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: "locks"}))
	quiet := goleak.IgnoreCurrent() // ignore the goroutines of the server, which run until the end of the test
	transport.CloseIdleConnections()
	lab.Variants(t, lab.Leases(), func(t *testing.T, config leasehold.Config) {
		before := descriptors(t)
		opened := s.conns.Load()
		c := lab.Must(leasehold.New(db, config))(t)
		for i := range n {
			lab.OK(t, granted(t.Context(), c, key(i%100)))
		}
		lab.WantRange(t, "connections of cycles one after the other", s.conns.Load()-opened, 0, 16)
		s.hangs.Store(true)
		var wg sync.WaitGroup
		for i := range n / 10 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				lab.WantErr(t, "Acquire", lab.ErrorOf(c.Acquire(ctx, key(i))), context.DeadlineExceeded)
			})
		}
		wg.Wait()
		s.hangs.Store(false)
		lab.OK(t, c.Close(t.Context()))
		// The attempts of the calls above may last for up to three seconds. So this loop waits
		// until all their goroutines have ended.
		late, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for {
			transport.CloseIdleConnections()
			left := goleak.Find(quiet, goleak.IgnoreAnyFunction("testing.(*T).Run"), goleak.IgnoreAnyFunction("testing.tRunner"))
			if left == nil {
				break
			}
			if late.Err() != nil {
				t.Fatal(left)
			}
		}
		after := descriptors(t)
		if after > before {
			t.Errorf("%d descriptors, %d before", after, before)
		}
		t.Logf("%d cycles, %d of them out of time: %d descriptors before and %d after, %d connections", n+n/10, n/10, before, after, s.conns.Load()-opened)
	})
}
