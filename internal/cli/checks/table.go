package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/table"
)

// described is a client for table.Check. It keeps the table description that DescribeTable
// returns. If IAM denies DescribeTimeToLive, it sets noTTL and returns no error, so that
// table.Check continues.
type described struct {
	table.DB
	table *types.TableDescription // result of DescribeTable; nil if it failed
	noTTL bool                    // true if IAM denied DescribeTimeToLive
}

func (d *described) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (out *dynamodb.DescribeTableOutput, err error) {
	err = attempts.Patiently(ctx, func(ctx context.Context) (err error) {
		out, err = d.DB.DescribeTable(ctx, in, opts...)
		return err
	})
	if err == nil {
		d.table = out.Table
	}
	return out, err
}

func (d *described) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, opts ...func(*dynamodb.Options)) (out *dynamodb.DescribeTimeToLiveOutput, err error) {
	err = attempts.Patiently(ctx, func(ctx context.Context) (err error) {
		out, err = d.DB.DescribeTimeToLive(ctx, in, opts...)
		return err
	})
	if d.noTTL = decide.Denied(err); d.noTTL {
		return &dynamodb.DescribeTimeToLiveOutput{}, nil
	}
	return out, err
}

// settings returns findings about the table: whether its status, key attributes, TTL
// setting and replicas fit the layout of the records.
func (t *Subject) settings(ctx context.Context) (found []Finding) {
	known := described{DB: t.Home}
	problems, err := table.Check(ctx, &known, table.Spec{Name: t.Table, Layout: t.Layout})
	switch {
	case errors.Is(err, leasehold.ErrTableNotFound):
		return []Finding{t.undescribed(leasehold.ErrTableNotFound)}
	case decide.Denied(err):
		return []Finding{untold("table", "DescribeTable")}
	case err != nil:
		return []Finding{t.undescribed(err)}
	}
	fits := true
	for _, p := range problems {
		f := Finding{Check: p.About, State: Warning, What: store.ByFlags(p.What)}
		switch last := len(found) - 1; {
		case last >= 0 && found[last].Check == p.About:
			found[last].What += "; " + f.What
			continue
		case p.Fatal:
			f.State, f.Last, fits = Fatal, true, false
		case p.About == "ttl" && (known.noTTL || !fits): // skipped: the advice about TTL applies only to a table that otherwise fits the layout
			continue
		}
		found = append(found, f)
	}
	if known.noTTL {
		found = append(found, untold("ttl", "DescribeTimeToLive"))
	}
	t.isStrong = known.table.MultiRegionConsistency == types.MultiRegionConsistencyStrong
	if len(found) == 0 {
		what := fmt.Sprintf("%s in %s fits layout %s", t.Table, t.Location, t.Layout.Name())
		if t.Created {
			what += ", made now"
		}
		found = []Finding{{Check: "table", State: OK, What: what}}
	}
	return append(found, t.replicas(known.table)...)
}

// undescribed returns the finding for a failed DescribeTable, whose error is err. With
// --failover, the finding names the home Region, because the request was sent there.
func (t *Subject) undescribed(err error) Finding {
	f := failed("table", err)
	if len(t.Regions()) > 1 {
		f.What = "DescribeTable in " + t.Home.Options().Region
	}
	return f
}

// untold returns the finding for a check that was skipped because IAM denied the given action.
func untold(check, action string) Finding {
	return Finding{
		Check: check, State: Unknown, What: "dynamodb:" + action + " is denied, so this was not checked; locks do not need it",
		Do: "to check this too, use credentials that allow it",
	}
}

// right is an IAM action that commands of leasehold need. IAM has no action for a whole
// transaction. Instead, IAM checks one action for each item of a transaction: for a condition
// check of an item, for example, it checks ConditionCheckItem.
type right struct {
	action string // name of the action, without the prefix dynamodb:
	uses   string // the commands that need the action
	try    func(context.Context) error
}

// neededFor reports whether clients with the given kind of access, such as table.Use, need the
// action. They do if the policy that "table policy" prints for this access contains the action.
func (r right) neededFor(access table.Access) bool {
	policy, err := table.Spec{}.Policy("", access)
	return err == nil && strings.Contains(policy, `"dynamodb:`+r.action+`"`)
}

// never is a condition that no item meets. A write with this condition shows whether IAM
// allows the write, but changes nothing.
const never = "attribute_exists(#k) AND attribute_not_exists(#k)"

// rights returns all IAM actions that leasehold's commands and library need to read and write
// items. The field "try" of each action is a function that sends a request. This request needs the
// action, and changes nothing.
func (t *Subject) rights() []right {
	db, name, names, never := t.Requests(), aws.String(t.Table), map[string]string{"#k": t.Proto.Schema().Partition}, aws.String(never)
	return []right{
		{"GetItem", "every command", t.get(db)},
		{"BatchGetItem", "several keys, permits (run -p), ls --check in few requests", sending(db.BatchGetItem, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{t.Table: {Keys: []protocol.Item{t.item}, ConsistentRead: aws.Bool(true)}},
		})},
		{"UpdateItem", "run, elect, acquire, renew, release, break", sending(db.UpdateItem, &dynamodb.UpdateItemInput{
			TableName: name, Key: t.item, ConditionExpression: never, ExpressionAttributeNames: names,
		})},
		{"DeleteItem", "releases that delete the record, demo", sending(db.DeleteItem, &dynamodb.DeleteItemInput{
			TableName: name, Key: t.item, ConditionExpression: never, ExpressionAttributeNames: names,
		})},
		{"ConditionCheckItem", "transactions: several keys, and writes of Commit", sending(db.TransactWriteItems, &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{
				ConditionCheck: &types.ConditionCheck{TableName: name, Key: t.item, ConditionExpression: never, ExpressionAttributeNames: names},
			}},
		})},
		{"Query", "Client.List of one partition", sending(db.Query, &dynamodb.QueryInput{
			TableName: name, Limit: aws.Int32(1), KeyConditionExpression: aws.String("#k = :k"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: protocol.Item{":k": t.item[names["#k"]]},
		})},
		{"Scan", "ls, table rewrite", sending(db.Scan, &dynamodb.ScanInput{TableName: name, Limit: aws.Int32(1)})},
	}
}

// sending returns a function that calls send with the given input. The function returns
// only the error of send.
func sending[In, Out any](send func(context.Context, In, ...func(*dynamodb.Options)) (Out, error), input In) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := send(ctx, input)
		return err
	}
}

// permissions tries each IAM action, and returns the finding about the actions that IAM denied. A
// denial is a problem only if clients need the action to hold locks, because a service should have
// no other permissions.
func (t *Subject) permissions(ctx context.Context) []Finding {
	var lacks, spares []string
	f := Finding{Check: "rights", State: OK, What: "all that holding locks needs"}
	for _, r := range t.rights() {
		if t.isStrong && r.action == "ConditionCheckItem" { // strongly consistent global tables do not support transactions
			continue
		}
		err := attempts.Patiently(ctx, r.try)
		switch decide.Classify(err).Cause {
		case decide.Unreachable:
			return []Finding{failed(f.Check, err)}
		case decide.Busy:
			f.State = Unknown
		}
		what := "dynamodb:" + r.action + " (" + r.uses + ")"
		switch {
		case err == nil, errors.As(err, new(*types.ConditionalCheckFailedException)), errors.As(err, new(*types.TransactionCanceledException)):
		case decide.Denied(err) && !r.neededFor(table.Use):
			spares = append(spares, what)
		default:
			t.denied = append(t.denied, r.action)
			lacks = append(lacks, what)
			if !decide.Denied(err) {
				f.Err = err
			}
		}
	}
	f.Values = map[string]any{"denied": append(lacks, spares...)}
	switch {
	case len(lacks) > 0 && f.Err != nil:
		f.What = "refused: " + strings.Join(lacks, ", ")
	case len(lacks) > 0:
		f.State, f.What = Fatal, "denied: "+strings.Join(lacks, ", ")
		f.Do = "allow that in the caller's IAM policy, as leasehold table policy use does"
	case len(spares) > 0:
		f.What += "; denied, as to a service it may be: " + strings.Join(spares, ", ")
	}
	if f.State == OK && f.Err != nil {
		f.State = Fatal
	}
	return []Finding{f}
}

// Subject is a store that the checks examine, with the length of a lease in this store.
type Subject struct {
	*store.Store // the store; New replaces its client Home by a client that does not retry
	Lease        time.Duration

	key    leasehold.Key // key of the lock that the checks acquire
	item   protocol.Item // key attributes of that lock's item
	probe  *probe
	denied []string // actions that IAM denied

	isStrong bool // true if the table is strongly consistent across Regions
}

// New returns a Subject for the store s. The checks acquire a lock. The lock's key is the text in
// "key" with random text appended. New replaces s.Home by a client that does not retry and whose
// requests are measured.
func New(s *store.Store, lease time.Duration, key string) (*Subject, error) {
	t := &Subject{Store: s, Lease: lease, key: s.TrialKey(store.Unused(key), "doctor"), probe: &probe{}}
	var err error
	t.item, err = s.Proto.Key(t.key)
	s.Home = t.probe.watch(s.Home)
	return t, err
}

// Settings returns the checks of the table's settings and of the caller's permissions.
// These checks change nothing in the table.
func (t *Subject) Settings() []Check {
	list := []Check{{"describing the table", t.settings}}
	if len(t.Regions()) > 1 {
		list = slices.Insert(list, 0, Check{"asking each Region", t.regions})
	}
	if t.File == "" { // a local store has no IAM permissions
		list = append(list, Check{"trying what the caller may do", t.permissions})
	}
	return list
}

// Locking returns the checks that acquire, renew and release a lock in the table. For a
// table in DynamoDB, it also returns the checks of the clock and of the credentials.
func (t *Subject) Locking(locks *leasehold.Client) []Check {
	list := []Check{{"acquiring a lock, and renewing it", func(ctx context.Context) []Finding { return t.lock(ctx, locks) }}}
	if t.File == "" {
		list = append(list, Check{"reading the server's clock", t.clock}, Check{"looking at the credentials", t.credentials})
	}
	return list
}

// get returns a function that reads the item of the lock that the checks acquire. The read
// goes through db and is strongly consistent. The function returns only the error of the
// read.
func (t *Subject) get(db leasehold.DB) func(context.Context) error {
	return sending(db.GetItem, &dynamodb.GetItemInput{TableName: aws.String(t.Table), Key: t.item, ConsistentRead: aws.Bool(true)})
}

// cleanTime is the time limit to acquire the checks' lock, and the time limit to delete its record.
const cleanTime = 10 * time.Second

// lock acquires a lock, renews it repeatedly to measure the round trip, and releases it. It
// then deletes the lock's record.
func (t *Subject) lock(ctx context.Context, locks *leasehold.Client) (found []Finding) {
	for _, action := range []string{"GetItem", "UpdateItem", "DeleteItem"} {
		if slices.Contains(t.denied, action) {
			return []Finding{{Check: "lock", State: Unknown, What: "not tried, as dynamodb:" + action + " is denied"}}
		}
	}
	// The record must be deleted even after Ctrl-C. It must also be deleted after a failed
	// Acquire, because DynamoDB may have applied the grant although its reply was lost.
	defer func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		if err := t.Delete(within, t.key); err != nil {
			found = append(found, Finding{
				Check: cleanUp, State: Warning, What: fmt.Sprintf("the record of %s may be left", t.key),
				Do: "it locks nothing else; delete it, or leave it to TTL", Err: err,
			})
		}
	}()
	within, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	lock, err := locks.Acquire(within, t.key.Partition, leasehold.WithSortKey(t.key.Sort), leasehold.WithoutRenewal())
	if err != nil {
		return []Finding{{Check: "lock", State: Fatal, What: "not acquired", Err: err}}
	}
	took, err := t.probe.timed(func() error { return lock.Renew(ctx) })
	err = errors.Join(err, lock.Release(ctx))
	f := Finding{
		Check: "lock", State: OK, What: fmt.Sprintf("acquired %s, renewed it and released it", t.key),
		Values: map[string]any{"key": t.key.Partition, "token": lock.Token()},
	}
	if err != nil {
		f = Finding{Check: "lock", State: Fatal, What: "acquired, but then", Err: err}
	}
	return append([]Finding{f}, roundTrip(t.Lease, t.Proto.Skew(), took)...)
}

// credentials reports when the credentials expire. It does not test them, because the
// earlier checks have already sent requests with them.
func (t *Subject) credentials(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, attempts.Limit)
	defer cancel()
	c, err := t.Home.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return []Finding{{Check: "credentials", State: Fatal, What: "not loaded", Err: err}}
	}
	f := Finding{Check: "credentials", State: OK, What: "from " + c.Source, Values: map[string]any{"credentials": c.Source}}
	switch {
	case c.CanExpire:
		f.What += ", good until " + wording.Time(c.Expires) + ", loaded again before that"
		f.Values["expires"] = wording.Time(c.Expires)
	case c.SessionToken != "":
		f.What += ", temporary, and nothing says until when they are good: loaded again once they are refused"
	}
	return []Finding{f}
}
