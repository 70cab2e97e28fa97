package layouttest_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// dynamolock imitates the grants and releases of a client of cirello.io/dynamolock v2 to
// v5. It returns an error in the same situations as that client.
type dynamolock struct {
	w       *lab.World
	owner   string
	version string // version of the current grant
	n       int
}

var errDynamolockHeld = errors.New("dynamolock: held")

func (d *dynamolock) acquire(key string) error {
	item := map[string]types.AttributeValue{}
	if old := d.w.Item(key); old != nil {
		if lease := lab.Text(old, "leaseDuration"); lease != "" {
			if _, err := time.ParseDuration(lease); err != nil {
				return fmt.Errorf("cannot parse lease duration: %w", err)
			}
		}
		if old["isReleased"] == nil {
			return errDynamolockHeld
		}
		item = maps.Clone(old) // dynamolock carries unknown attributes forward
		delete(item, "isReleased")
	}
	d.n++
	d.version = fmt.Sprintf("%d:%s%d", time.Now().UnixNano(), strings.Repeat("A", 51), d.n)
	maps.Copy(item, map[string]types.AttributeValue{
		"key": lab.Str(key), "ownerName": lab.Str(d.owner), "leaseDuration": lab.Str("20s"), "recordVersionNumber": lab.Str(d.version),
	})
	return lab.ErrorOf(d.w.DB.PutItem(d.w.T.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("locks"), Item: item,
		ConditionExpression:       aws.String("attribute_not_exists(#k) OR isReleased = :one"),
		ExpressionAttributeNames:  map[string]string{"#k": "key"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": lab.Str("1")},
	}))
}

func (d *dynamolock) release(key string) error {
	return lab.ErrorOf(d.w.DB.UpdateItem(d.w.T.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"key": lab.Str(key)},
		UpdateExpression:          aws.String("SET isReleased = :one"),
		ConditionExpression:       aws.String("recordVersionNumber = :v AND ownerName = :o"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": lab.Str("1"), ":v": lab.Str(d.version), ":o": lab.Str(d.owner)},
	}))
}

func TestDynamolockCannotReadNativeRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		native, _ := w.Client(lab.ConfigOf("locks", layout.Native{}))
		defer native.Close(t.Context())
		w.Release(w.Acquire(native, "job"))
		peer := &dynamolock{w: w, owner: "go-1"}
		lab.WantText(t, "a key that was not rewritten, as docs/migrating says", peer.acquire("job"), "missing unit")
	})
}

func TestDynamolockReadsRecordRewrittenInItsLayout(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		native, _ := w.Client(lab.ConfigOf("locks", layout.Native{}))
		defer native.Close(t.Context())
		w.Release(w.Acquire(native, "job", leasehold.WithData([]byte("state"))))
		shared, _ := w.Client(lab.ConfigOf("locks", layout.Dynamolock{}))
		defer shared.Close(t.Context())
		rewritten := w.Acquire(shared, "job", leasehold.IfExists())
		w.Release(rewritten)

		peer := &dynamolock{w: w, owner: "go-1"}
		lab.OK(t, peer.acquire("job"))
		if item := w.Item("job"); item["data"] == nil || item["expiresAt"] != nil {
			t.Errorf("dynamolock has written %v", item)
		}
		lab.WantErr(t, "tried", lab.ErrorOf(shared.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
		lab.OK(t, peer.release("job"))
		lock := w.Acquire(shared, "job")
		if lock.Token() <= rewritten.Token() || string(lock.Record().Data) != "state" {
			t.Errorf("token %d after %d, data %q", lock.Token(), rewritten.Token(), lock.Record().Data)
		}
		lab.WantErr(t, "dynamolock tried", peer.acquire("job"), errDynamolockHeld)
		w.Release(lock)
	})
}

// TTL must be off while clients of dynamolock use the table, because a break by a native client
// adds an expiry time to the record. The next grant of a dynamolock client does not remove this
// time, and neither does an update in place by the Java client.
func TestTTLWronglyDeletesRecordOfDynamolockClientAfterBreak(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		ttlOn(t, w)
		native, _ := w.Client(lab.ConfigOf("locks", layout.Native{}))
		defer native.Close(t.Context())
		peer := &dynamolock{w: w, owner: "go-1"}
		lab.OK(t, peer.acquire("job"))
		stuck := lab.Must(native.Get(t.Context(), "job"))(t)
		lab.OK(t, native.Break(t.Context(), stuck, leasehold.BreakOptions{}))
		lab.OK(t, peer.acquire("job"))
		lab.Elapse(30 * 24 * time.Hour)
		if w.Item("job") != nil {
			t.Error("TTL has not deleted the record, but docs/migrating says that it would")
		}
	})
}

// setToken sets the token of the only record in the table.
func setToken(t *testing.T, w *lab.World, n string) {
	t.Helper()
	for _, item := range w.Scan() {
		item["fencingToken"] = lab.Num(n)
		w.Put(item)
	}
}

// 2^53-2 is the largest possible token: the decoder refuses every larger token.
func TestKeyWithLargestTokenCanBeListedButNotAcquired(t *testing.T) {
	layouts := map[string]layout.Layout{"native": layout.Native{}, "awslabs": layout.AWSLabs{}, "dynamolock": layout.Dynamolock{},
		"python_dynamodb_lock": layout.PythonDynamoDBLock{}, "dynamo-dlm": layout.DynamoDLM{}, "dyndb-mutex": layout.DyndbMutex{}}
	check := func(name string, l layout.Layout, next func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock)) {
		t.Run(name, func(t *testing.T) {
			lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				c, _ := w.Client(cfg)
				first := w.Acquire(c, "job", leasehold.WithoutRenewal())
				next(t, w, c, first)
				for r, err := range c.List(t.Context(), leasehold.ListOptions{}) {
					if err != nil {
						t.Errorf("%+v: %v", r, err)
					}
				}
				// The key has no next token, so no client can acquire it. TryAcquire must return
				// soon, and the error must contain advice.
				began := time.Now()
				other, _ := w.Client(cfg)
				_, err := other.TryAcquire(t.Context(), "job")
				var refused *leasehold.RecordError
				if !errors.As(err, &refused) || refused.Attribute != "fencingToken" || time.Since(began) > time.Minute {
					t.Errorf("after the last token: %v", err)
				}
				const advice = " in table locks is at the last fencing token, 2^53-2: choose another key or, once nobody holds this one, " +
					"delete its record: tokens begin anew then, below the tokens that targets have seen"
				if !strings.HasSuffix(fmt.Sprint(err), advice) {
					t.Errorf("without advice: %v", err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
	for name, l := range layouts {
		check(name+" held with last token", l, func(t *testing.T, w *lab.World, _ *leasehold.Client, _ *leasehold.Lock) {
			setToken(t, w, "9007199254740990")
		})
		check(name+" taken over with last token", l, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *leasehold.Lock) {
			setToken(t, w, "9007199254740990")
			lab.Elapse(time.Minute)
		})
		check(name+" taken over", l, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *leasehold.Lock) {
			setToken(t, w, "9007199254740989")
			lock, err := c.Acquire(t.Context(), "job", leasehold.WithoutRenewal())
			if err != nil || lock.Token() != 9007199254740990 {
				t.Fatal(err)
			}
			lab.OK(t, lock.Renew(t.Context()))
		})
		if !l.Capabilities().KeepOnRelease {
			continue
		}
		check(name+" released", l, func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
			w.Release(lock)
			setToken(t, w, "9007199254740990")
		})
		check(name+" granted and released", l, func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
			w.Release(lock)
			setToken(t, w, "9007199254740989")
			w.Release(w.Acquire(c, "job"))
		})
		check(name+" handed over", l, func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
			w.Release(lock)
			setToken(t, w, "9007199254740989")
			last := w.Acquire(c, "job")
			next := make(chan error, 1)
			go func() { next <- lab.ErrorOf(c.Acquire(t.Context(), "job")) }()
			lab.Elapse(time.Second)
			w.Release(last)
			lab.WantAs[*leasehold.RecordError](t, "the next call", <-next)
		})
	}
}
