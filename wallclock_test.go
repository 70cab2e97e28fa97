package leasehold_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// Where records do not say when they expire, the wall clock is for people and for TTL.
func TestAWallClockThatIsSetChangesNeitherTrustNorDeath(t *testing.T) {
	const day = 24 * time.Hour
	plain := func(c *leasehold.Client, ctx context.Context) (*leasehold.Lock, error) { return c.Acquire(ctx, "job") }
	for name, by := range map[string]struct {
		cfg     leasehold.Config
		acquire func(*leasehold.Client, context.Context) (*leasehold.Lock, error)
	}{
		"a lock":         {lab.Config(), plain},
		"a shared lease": {lab.SharedConfig(), plain},
		"a writer": {lab.Config(), func(c *leasehold.Client, ctx context.Context) (*leasehold.Lock, error) {
			return lab.AcquireWrite(ctx, c, "job")
		}},
	} {
		// course has a holder cut off after a minute, and a waiter, while every 700 ms
		// somebody sets the wall clocks of both. It returns when trust ended, and when the
		// key was taken over.
		course := func(t *testing.T, step func(i int) (holder, waiter time.Duration)) (ended, taken time.Duration) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				atHolder, atWaiter := &lab.Jumps{}, &lab.Jumps{}
				half := lab.Chance(func() float64 { return 0.5 })
				a, wire := w.Client(by.cfg, atHolder.Edit, half)
				b, _ := w.Client(by.cfg, atWaiter.Edit, half)
				lock, err := by.acquire(a, t.Context())
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				stop := make(chan struct{})
				go func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						case <-time.After(700 * time.Millisecond):
							holder, waiter := step(i)
							atHolder.Wall.Add(int64(holder))
							atWaiter.Wall.Add(int64(waiter))
						}
					}
				}()
				time.AfterFunc(time.Minute, func() { wire.SetFault(lab.Cut) })
				context.AfterFunc(lock.Context(), func() { ended = time.Since(began) })
				next, err := by.acquire(b, t.Context())
				if err != nil {
					t.Fatal(err)
				}
				taken = time.Since(began)
				close(stop)
				w.Release(next)
				wire.SetFault(nil)
			})
			return ended, taken
		}
		t.Run(name, func(t *testing.T) {
			wantEnded, wantTaken := course(t, func(int) (_, _ time.Duration) { return 0, 0 })
			if wantEnded == 0 || wantTaken <= wantEnded {
				t.Fatalf("trust ended after %v, and the key was taken over after %v", wantEnded, wantTaken)
			}
			for how, step := range map[string]func(i int) (holder, waiter time.Duration){
				"forward": func(int) (_, _ time.Duration) { return day, day },
				"back":    func(int) (_, _ time.Duration) { return -day, -day },
				"apart":   func(int) (_, _ time.Duration) { return -time.Minute, time.Minute },
				"to and fro": func(i int) (_, _ time.Duration) {
					return day * time.Duration(1-2*(i%2)), -day * time.Duration(1-2*(i%2))
				},
			} {
				if ended, taken := course(t, step); ended != wantEnded || taken != wantTaken {
					t.Errorf("%s: trust ended after %v, not %v; the key was taken over after %v, not %v", how, ended, wantEnded, taken, wantTaken)
				}
			}
		})
	}
}

// The simulation and the test above set the clocks that the lock is given. It must
// read no other: not in a new file either.
func TestTheLockReadsNoWallClockButItsMachines(t *testing.T) {
	allowed := []string{
		"client.go New",                // gives the machine its clock
		"internal/hold/failing.go add", // measures a pause, by the monotonic reading
		"record.go clockText",          // says how long ago something was, to people
		"record.go MarshalJSON",
		"internal/protocol/owner.go NewVersion", // tells people when a version was made
	}
	var read []string
	dirs := []string{".", "election", "semaphore", "rwlock"}
	for _, room := range []string{"attempts", "breaking", "decide", "fence", "hold", "lease", "line", "liveness", "observed", "places", "protocol", "records", "seek", "unsettled"} {
		dirs = append(dirs, filepath.Join("internal", room))
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(fn, func(n ast.Node) bool {
					sel, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					pkg, ok := sel.X.(*ast.Ident)
					if ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
						read = append(read, filepath.ToSlash(name)+" "+fn.Name.Name)
					}
					return true
				})
			}
		}
	}
	for _, by := range read {
		if !slices.Contains(allowed, by) {
			t.Errorf("%s reads the wall clock of the process: use that of its machine", by)
		}
	}
	for _, by := range allowed {
		if !slices.Contains(read, by) {
			t.Errorf("%s does not read the wall clock any more", by)
		}
	}
}
