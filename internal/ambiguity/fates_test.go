package ambiguity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// fate is the way in which the simulated network treats one request of a trial.
type fate struct {
	name, short string
	answered    bool // if set, a reply tells the client whether the request was applied
	fault       func(x *trial, r *lab.Request) (*http.Response, error)
}

// arrivesLate is the delay with which a late request arrives.
const arrivesLate = 5 * time.Second

var fates = []fate{
	{"applied and answered", "answered", true, func(_ *trial, r *lab.Request) (*http.Response, error) { return r.Send() }},
	{"applied, and the reply is lost", "reply lost", false, func(_ *trial, r *lab.Request) (*http.Response, error) { return lab.LoseReply(r) }},
	{"lost before it arrives", "lost", false, drop},
	{"lost from sight, and arrives 5 s later", "late", false, func(_ *trial, r *lab.Request) (*http.Response, error) {
		return lab.Delayed(arrivesLate)(r)
	}},
	{"applied and answered, and a second copy arrives 5 s later", "twice", true, func(_ *trial, r *lab.Request) (*http.Response, error) {
		res, err := r.Send()
		_, _ = lab.Delayed(arrivesLate)(r)
		return res, err
	}},
	{"applied twice at once, and the second copy is answered", "doubled", true, func(_ *trial, r *lab.Request) (*http.Response, error) {
		if _, err := r.Send(); err != nil {
			return nil, err
		}
		return r.Send()
	}},
	{"refused: access denied", "refused", true, refuse("AccessDeniedException")},
	{"throttled", "throttled", true, refuse("ProvisionedThroughputExceededException")},
	{"in conflict with a transaction", "conflict", true, func(_ *trial, r *lab.Request) (*http.Response, error) { return lab.Conflict(r.Call), nil }},
	{"answered, after another's write", "overtaken", true, func(x *trial, r *lab.Request) (*http.Response, error) {
		x.op.overtake(x, r)
		return r.Send()
	}},
}

// silence is a fate that drops a request and all later requests of the trial, until the
// operation has returned.
var silence = fate{"silence: nothing gets through any more until the call has returned", "silence", false, drop}

func drop(*trial, *lab.Request) (*http.Response, error) { return nil, lab.ErrReset }

func refuse(code string) func(*trial, *lab.Request) (*http.Response, error) {
	return func(*trial, *lab.Request) (*http.Response, error) { return lab.Refusal(400, code), nil }
}

// network handles each request of the trial's client, as a network would. It applies the
// trial's fates to the first requests of the operation.
func (x *trial) network(r *lab.Request) (*http.Response, error) {
	if !x.fits(r.Call) {
		// If a request with a fate and a request without one are sent at the same instant, the
		// request with the fate must arrive first.
		time.Sleep(time.Millisecond)
	}
	x.mu.Lock()
	var f fate
	switch {
	case !x.armed:
		f = fates[0]
	case x.silent:
		f = silence
	case x.fits(r.Call) && x.next < len(x.fates):
		f = x.fates[x.next]
		x.next++
		x.silent = f.short == silence.short
		x.unanswered = x.unanswered || !f.answered
	default:
		f = fates[0]
	}
	if f.short == silence.short && x.fits(r.Call) {
		x.unanswered = true
	}
	x.mu.Unlock()
	return f.fault(x, r)
}

// fits reports whether the trial may give a fate to the request c.
func (x *trial) fits(c lab.Call) bool { return x.op.fits(c) && bytes.Contains(c.Body, x.only) }

// keys returns a function that describes in words which clients hold the named keys.
func keys(names ...string) func(*trial) string {
	return func(x *trial) string {
		var all []string
		for _, name := range names {
			who := x.who(x.Item(name))
			if len(names) > 1 {
				who = name + " " + who
			}
			all = append(all, who)
		}
		return strings.Join(all, ", ")
	}
}

// The method "who" describes the holder that a record shows, in the words of tables.md.
func (x *trial) who(item map[string]types.AttributeValue) string {
	owner := lab.Text(item, "ownerName")
	switch {
	case item == nil:
		return "no record"
	case lab.Text(item, "isReleased") != "":
		return "free"
	case strings.HasPrefix(owner, "test/"):
		return "ours"
	default:
		return "another's"
	}
}

// keyAndData describes in words the holder of the key "job" and the data of its record.
func keyAndData(x *trial) string {
	who := keys("job")(x)
	if d, ok := x.Item("job")["data"].(*types.AttributeValueMemberB); ok {
		return who + ", " + string(d.Value) + " data"
	}
	return who + ", no data"
}

// keyAndMark describes in words the holder of the key "job" and the record's done mark: whether
// the work is done, and by which client.
func keyAndMark(x *trial) string {
	item := x.Item("job")
	who := keys("job")(x)
	mark, _ := item["lastDone"].(*types.AttributeValueMemberM)
	switch {
	case mark == nil:
		return who + ", not done"
	case strings.HasPrefix(lab.Text(mark.Value, "by"), "test/"):
		return who + ", done by us"
	}
	return who + ", done by another"
}

// written returns a function that describes in words how often the item "a" was written, and
// which clients hold the named keys.
func written(names ...string) func(*trial) string {
	return func(x *trial) string {
		s := "not written"
		switch n := len(x.Log("a")); n {
		case 0:
		case 1:
			s = "written once"
		default:
			s = fmt.Sprintf("written %d times", n)
		}
		return s + "; " + keys(names...)(x)
	}
}

// The functions below act as another client. Some write to the table just before a request of
// the operation arrives. The others make a call after the operation has returned.

// stolen returns a function that makes another client hold the given key.
func stolen(key string) func(*trial, *lab.Request) {
	return func(x *trial, _ *lab.Request) {
		if item := x.Item(key); item == nil || lab.Text(item, "isReleased") != "" {
			_, _ = x.thief.TryAcquire(context.Background(), key, leasehold.WithoutRenewal())
			return
		}
		x.others++
		v := fmt.Sprint("another's ", x.others)
		x.Update(key, map[string]types.AttributeValue{
			"ownerName": lab.Str("thief/00000000000000000000000000000000"), "grantId": lab.Str(v), "recordVersionNumber": lab.Str(v),
			"session": nil, "leaseDuration": lab.Str("20000"),
		})
	}
}

// doneByAnother makes another client take the key "job", and then release the key with a
// mark. The mark says that this other client has done the work.
func doneByAnother(x *trial, r *lab.Request) {
	stolen("job")(x, r)
	x.others++
	x.Update("job", map[string]types.AttributeValue{
		"isReleased": lab.Str("1"), "fencingToken": lab.Num(fmt.Sprint(1<<51 + x.others)),
		"lastDone": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"once": lab.Str("it"), "by": lab.Str("thief/00000000000000000000000000000000"), "at": lab.Num("1"), "fencingToken": lab.Num(fmt.Sprint(1<<51 + x.others)),
		}},
	})
}

// renewed returns a function that gives the record of the key a new version, as a renewal by the
// holder x.other does. If x.other does not hold the key, the function does the same as stolen.
func renewed(key string) func(*trial, *lab.Request) {
	return func(x *trial, r *lab.Request) {
		if !strings.HasPrefix(lab.Text(x.Item(key), "ownerName"), "other/") {
			stolen(key)(x, r)
			return
		}
		x.Update(key, map[string]types.AttributeValue{"recordVersionNumber": lab.Str(protocol.NewVersion())})
	}
}

// shut makes the condition of lab.NoteIf fail: shut removes the attribute "open", which the
// condition requires.
func shut(x *trial, _ *lab.Request) {
	remove := &types.Update{
		TableName: lab.Note("a", "").Update.TableName, Key: lab.WorkKey("a"),
		UpdateExpression: aws.String("REMOVE #o"), ExpressionAttributeNames: map[string]string{"#o": "open"},
	}
	if err := x.Transact(types.TransactWriteItem{Update: remove}); err != nil {
		x.T.Error(err)
	}
}

var sessionKey = regexp.MustCompile(`leasehold/session/[a-z2-7]{26}`)

// session returns the session key that a request contains.
func session(r *lab.Request) string { return string(sessionKey.Find(r.Body)) }

func aboutSession(c lab.Call) bool {
	return !c.Reads() && slices.ContainsFunc(c.Keys(), func(k string) bool { return strings.HasPrefix(k, "leasehold/session/") })
}

// taken stores a row of another client under the session key that the request contains. The
// request then cannot create the row of its own session under that key.
func taken(x *trial, r *lab.Request) {
	x.Put(map[string]types.AttributeValue{"key": lab.Str(session(r)), "kind": lab.Str("another's")})
}

// keeps returns a function that checks that another client still holds the given lock, and
// then releases the lock.
func keeps(lock *leasehold.Lock) func() error {
	return func() error {
		return errors.Join(lock.Err(), lock.Renew(context.Background()), lock.Release(context.Background()))
	}
}

// asks returns a value for the field operation.ask: a function that acquires keys with a new
// client, which has read nothing from the table.
func asks(acquire func(ctx context.Context, x *trial, c *leasehold.Client) (*leasehold.Lock, error)) func(context.Context, *trial) (*leasehold.Lock, func() error, error) {
	return func(ctx context.Context, x *trial) (*leasehold.Lock, func() error, error) {
		lock, err := acquire(ctx, x, x.rival())
		if err != nil {
			return nil, nil, err
		}
		return lock, keeps(lock), nil
	}
}

var (
	askForJob = asks(func(ctx context.Context, _ *trial, c *leasehold.Client) (*leasehold.Lock, error) {
		return c.Acquire(ctx, "job")
	})
	askForPermit = asks(func(ctx context.Context, x *trial, c *leasehold.Client) (*leasehold.Lock, error) {
		return x.semaphore(c).Acquire(ctx)
	})
)

func askForAll(ctx context.Context, x *trial) (*leasehold.Lock, func() error, error) {
	g, err := x.rival().AcquireAll(ctx, leasehold.Keys("x", "y"))
	if err != nil {
		return nil, nil, err
	}
	// longest is the lock that took longest to acquire. This is a lock that was taken over, or the
	// first lock if none was taken over.
	longest := g.Locks()[0]
	for _, lock := range g.Locks() {
		if _, over := lock.TookOver(); over {
			longest = lock
		}
	}
	return longest, func() error { return errors.Join(g.Err(), g.Release(context.Background())) }, nil
}
