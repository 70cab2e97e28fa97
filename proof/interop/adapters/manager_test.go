package adapters

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/locktest"
)

// newManager returns a controller-runtime manager that runs the given function. The manager
// watches no resources, so it needs no Kubernetes cluster.
func newManager(run func(ctx context.Context) error) (manager.Manager, error) {
	stopIn := time.Second // well within the margin of a lease of 20 s
	mgr, err := manager.New(&rest.Config{Host: "127.0.0.1:1"}, manager.Options{
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: &stopIn,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper([]schema.GroupVersion{}), nil
		},
	})
	if err != nil {
		return nil, err
	}
	return mgr, mgr.Add(manager.RunnableFunc(run))
}

func TestManagerRunsOnlyInProcessThatLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var inside, terms atomic.Int32
		done := make(chan error)
		var clients []*leasehold.Client
		leads := make([]atomic.Bool, 2)
		for i := range leads {
			locks := env.Client(leasehold.Config{})
			clients = append(clients, locks)
			e := lab.Must(election.New(locks, "operator"))(t)
			go func() {
				done <- LeadManager(ctx, e, "", func() (manager.Manager, error) {
					return newManager(func(ctx context.Context) error {
						if inside.Add(1) > 1 {
							t.Error("two managers run")
						}
						terms.Add(1)
						leads[i].Store(true)
						<-ctx.Done()
						leads[i].Store(false)
						inside.Add(-1)
						return nil
					})
				})
			}()
		}
		lab.Elapse(time.Minute)
		if inside.Load() != 1 || terms.Load() != 1 {
			t.Fatalf("%d managers run, in %d terms", inside.Load(), terms.Load())
		}
		first := 0
		if leads[1].Load() {
			first = 1
		}
		env.Disconnect(clients[first])
		lab.Elapse(time.Minute)
		if leads[first].Load() || !leads[1-first].Load() {
			t.Error("the other process did not take over")
		}
		env.Reconnect(clients[first])
		env.Disconnect(clients[1-first])
		lab.Elapse(time.Minute)
		if !leads[first].Load() || terms.Load() != 3 {
			t.Errorf("the first did not lead again, with a new manager; %d terms", terms.Load())
		}
		cancel()
		for range leads {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		}
	})
}
