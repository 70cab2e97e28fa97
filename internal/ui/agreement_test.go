package ui

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

func TestUIPageAndCommandShowSameHolderState(t *testing.T) {
	own, shared := lab.ConfigOf("locks", layout.Native{}), lab.ConfigOf("locks", layout.Native{})
	shared.SharedLease = true
	clocked, bounded := lab.ConfigOf("locks", layout.DynamoDLM{MaxSkew: 3 * time.Second}), own
	bounded.MaxSkew = time.Second
	nothing := func(*lab.World, *leasehold.Lock) {}
	rowOf := func(lock *leasehold.Lock) string { return "leasehold/session/" + lock.Record().Session }
	type variant struct {
		cfg     leasehold.Config
		dies    bool                                     // the holder dies before the page and the command begin to observe it
		then    func(w *lab.World, lock *leasehold.Lock) // called while the page and the command observe the holder
		page    State                                    // "" if the page does not show the key
		command holders.State                            // "" if the record has no holder
		end     time.Duration                            // time from the grant to the end of the lease of a dead holder; zero if not checked
	}
	lab.Variants(t, map[string]variant{
		"silence":  {own, true, nothing, Dead, holders.Dead, 22 * time.Second},
		"renewals": {own, false, nothing, Held, holders.Live, 0},
		"release":  {own, false, func(w *lab.World, lock *leasehold.Lock) { w.Release(lock) }, Released, "", 0},
		"deletion": {own, false, func(w *lab.World, _ *leasehold.Lock) { w.Delete("job") }, "", "", 0},
		"damage": {own, false, func(w *lab.World, _ *leasehold.Lock) {
			w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Num("1")})
		}, Damaged, "", 0},
		"session silent":      {shared, true, nothing, Dead, holders.Dead, 22 * time.Second},
		"session renewed":     {shared, false, nothing, Held, holders.Live, 0},
		"session marked dead": {shared, true, func(w *lab.World, lock *leasehold.Lock) { w.MarkDead(rowOf(lock)) }, Dead, holders.Dead, 0},
		"session without row": {shared, true, func(w *lab.World, lock *leasehold.Lock) { w.Delete(rowOf(lock)) }, Dead, holders.Dead, 0},
		"session damaged": {shared, true, func(w *lab.World, lock *leasehold.Lock) {
			w.Update(rowOf(lock), map[string]types.AttributeValue{"ownerName": lab.Num("1")})
		}, Held, "", 0}, // no client takes the key over: a waiter gets an error
		"expiry time":         {clocked, true, nothing, Dead, holders.Dead, 23 * time.Second},
		"expiry time renewed": {clocked, false, nothing, Held, holders.Live, 0},
		"MaxSkew":             {bounded, true, nothing, Dead, holders.Dead, 21 * time.Second},
	}, func(t *testing.T, c variant) {
		lab.InLayout(t, c.cfg.Layout, func(t *testing.T, w *lab.World, _ leasehold.Config) {
			holder, wire := mortal(t, w, c.cfg)
			lock, began := w.Acquire(holder, "job"), time.Now()
			if c.dies {
				wire.SetFault(lab.Cut)
			}
			lab.Elapse(2 * time.Second)
			b := serveWith(t, w, c.cfg)
			locks, _ := w.Client(c.cfg)
			proto := lab.Must(records.WithMaxSkew(c.cfg.Layout, c.cfg.MaxSkew))(t)
			command := make(chan holders.Observation, 1)
			go func() {
				command <- holders.New(w.DB, "locks", proto, c.cfg.Layout.Capabilities(), locks).Observe(t.Context(), []leasehold.Record{lock.Record()})[0]
			}()
			lab.Elapse(time.Second)
			c.then(w, lock)
			b.show("job", lock.Key().Sort)
			lab.Elapse(30 * time.Second)
			found := <-command
			b.isShown("on the page", "job", c.page)
			lab.Want(t, "state in the command", found.State, c.command)
			if c.end > 0 {
				page := time.UnixMilli(b.lock.Holder.Until).Sub(began)
				lab.WantRange(t, "end of the lease on the page", page, c.end, c.end+time.Second)
				lab.WantRange(t, "end of the lease in the command", found.Beat.Until.Sub(began), c.end, c.end+time.Second)
			}
		})
	})
}
