package simulation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// Clients do work once for each label, or once in each period. Some of the work fails, and
// some processes die during their work.
func TestSimulationOfOnceOnlyWorkFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(once))
}

func once(seed uint64) world { return onceBy(seed, (*process).doesOnce) }

func onceBy(seed uint64, do func(*process, *worker)) world {
	return world{
		keeps: true, shared: seed%5 == 0,
		work: func(c *process, r *worker) {
			if r.IntN(4) == 0 {
				c.section(r)
			} else {
				do(c, r)
			}
		},
	}
}

// Clients are closed while their other goroutines do work with the options Once and Every. Close
// releases the locks of these goroutines. If a goroutine then calls Release, the result must agree
// with the done mark in the record.
func TestSimulationOfCloseDuringOnceOnlyWorkFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(onceBeforeClose))
}

func onceBeforeClose(seed uint64) world {
	w := once(seed)
	w.shared, w.net = seed%3 > 0, closing(seed).net
	w.work = func(c *process, r *worker) {
		if r.IntN(8) == 0 {
			c.sectionBeforeClose(r)
		} else {
			c.doesOnce(r)
		}
	}
	return w
}

// task is work that must be done once under a key: once for a label, or once in each period.
type task struct {
	key, label string
	period     time.Duration // length of a period; 0 if the task has a label instead
	// asked is the start of the period in which newTask created the task, in milliseconds by the
	// wall clock of the process.
	asked int64
}

const taskPeriod = 2 * time.Second

func (c *process) newTask(r *worker) task {
	t := task{key: keyNames[r.IntN(len(keyNames))]}
	if r.IntN(2) == 0 {
		t.period, t.asked = taskPeriod, c.clocks.readWall().Truncate(taskPeriod).UnixMilli()
	} else {
		t.label = fmt.Sprint(time.Now().Unix() / 2)
	}
	return t
}

func (t task) option() leasehold.AcquireOption {
	if t.period != 0 {
		return leasehold.Every(t.period)
	}
	return leasehold.Once(t.label)
}

// doesOnce does a task, unless a process has already done it.
func (c *process) doesOnce(r *worker) { c.does(r, true) }

func (c *process) does(r *worker, checks bool) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	what := c.newTask(r)
	opts := []leasehold.AcquireOption{what.option()}
	if r.IntN(4) == 0 {
		opts = append(opts, c.try())
	}
	asked, over := c.operation(ctx, "acquire once")
	lock, err := c.client.Acquire(asked, what.key, opts...)
	over()
	var done *leasehold.DoneError
	if errors.As(err, &done) {
		c.wasDone(what.key, done.Done)
	}
	if err != nil {
		return
	}
	c.believes(c, lock)
	c.isUndone(what, lock)
	if c.isDead() {
		return
	}
	c.rest(r, 2000)
	// A worker that has lost the lock stops here in half of the cases. In the other cases it goes
	// on to a release with a done mark. This release must not store the mark.
	if c.isDead() || lock.Err() != nil && r.IntN(2) == 0 {
		return
	}
	ctx, cancel = context.WithTimeout(r.ctx(), upTo(r, 4*time.Second))
	defer cancel()
	fails := r.IntN(4) == 0
	if !fails || !checks {
		if !fails {
			c.works(lock)
		}
		if r.IntN(3) == 0 {
			call, value := c.begin(lock)
			err = lock.CommitAndRelease(c.asks(ctx, "commit and release"), lab.Writes(lab.Note(lock.Key().Partition, value)))
			c.end(call, err)
		} else {
			err = lock.Release(c.asks(ctx, "release with the mark"), leasehold.MarkDone())
		}
		switch {
		case fails:
		case err == nil:
			c.markedForGood(lock)
		case errors.Is(err, leasehold.ErrLost):
			c.unmarkedForGood(lock)
		}
	} else {
		err = lock.Release(c.asks(ctx, "release"))
	}
	if err == nil {
		c.releasedForGood(lock)
	}
}

// works records that the work under a grant has succeeded. Before this call, the table must not
// contain the done mark of the work.
func (c *checker) works(lock *leasehold.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.worked[pairOf(lock)] = true
}

func pairOf(lock *leasehold.Lock) [2]string {
	return [2]string{lock.Key().Partition, fmt.Sprint(lock.Token())}
}

// isUndone checks that a task was not yet done when its lock was granted. It reads the done mark
// that the record has now, because this mark cannot change while the grant is current. If the grant
// is no longer current, isUndone checks nothing.
func (c *checker) isUndone(what task, lock *leasehold.Lock) {
	item, mark := c.table.Item(what.key), c.markOf(what.key)
	if lab.Text(item, "grantId") != lock.Record().Grant || item["isReleased"] != nil || mark == nil {
		return
	}
	label, period := lab.Text(mark, "once"), lab.Number(mark, "period")
	if what.label != "" && label == what.label || what.period != 0 && period != "" && period >= fmt.Sprint(what.asked) {
		c.violated("17: process granted %v for work that the record marks as done: %s%s", lock.Key(), label, period)
	}
}

// markOf returns the done mark in the record of a key, or nil if there is none.
func (c *checker) markOf(key string) map[string]types.AttributeValue {
	if mark, ok := c.table.Item(key)["lastDone"].(*types.AttributeValueMemberM); ok {
		return mark.Value
	}
	return nil
}

// wasDone checks a DoneError: the work that the error reports as done must have succeeded.
func (c *checker) wasDone(key string, d leasehold.Done) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.worked[[2]string{key, fmt.Sprint(d.Token)}] {
		c.note("17: a DoneError of %s names token %d, whose work has not succeeded", key, d.Token)
	}
}

// markedForGood checks the record after a release that has stored a done mark. The record
// must have this mark or a later one.
func (c *checker) markedForGood(lock *leasehold.Lock) {
	if mark := c.markOf(lock.Key().Partition); mark == nil || lab.Number(mark, "fencingToken") < fmt.Sprint(lock.Token()) {
		c.violated("17: the release of token %d of %v returned nil, but the record does not have its mark", lock.Token(), lock.Key())
	}
}

// unmarkedForGood checks the record after a release that returned ErrLost. The record must
// not have the done mark of that lock.
func (c *checker) unmarkedForGood(lock *leasehold.Lock) {
	if mark := c.markOf(lock.Key().Partition); mark != nil && lab.Number(mark, "fencingToken") == fmt.Sprint(lock.Token()) {
		c.violated("17: Release reported token %d of %v as lost, but the record marks its work as done", lock.Token(), lock.Key())
	}
}

func TestSimulationCatchesWorkDoneTwice(t *testing.T) {
	areFound(t, 200,
		broken{"a grant that ignores the done mark", []string{"invariant 17: process granted"}, tampered(askingNothing, likewise(once))},
		broken{"a mark of work that failed", []string{"invariant 17:"}, likewise(func(seed uint64) world {
			return onceBy(seed, func(c *process, r *worker) { c.does(r, false) })
		})},
		broken{"a release that stores no mark", []string{"invariant 17: the release"}, tampered(unmarked, likewise(once))},
	)
}

// askingNothing changes the condition of a grant, so that the grant is applied even if
// the work was already done.
func askingNothing(_ *http.Request, body []byte) []byte {
	return regexp.MustCompile(`NOT ((#\d+)\.#\d+ (?:>|\\u003e)?= :\d+)`).ReplaceAll(body, []byte("NOT ($1 AND attribute_not_exists($2))"))
}

// unmarked makes releases store their done marks in an attribute that no client reads.
func unmarked(_ *http.Request, body []byte) []byte {
	return regexp.MustCompile(`"(#\d+)":"lastDone"(.*SET.*isReleased|.*isReleased.*SET)`).ReplaceAll(body, []byte(`"$1":"lastdone"$2`))
}
