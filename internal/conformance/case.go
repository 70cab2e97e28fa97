package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Engine is a DynamoDB server that the cases test.
type Engine struct {
	Name   string // name under which differences.go lists the engine's known differences from AWS
	Client *dynamodb.Client
}

// Case is a test of one behaviour that AWS documents for DynamoDB.
type Case struct {
	Name   string
	Table  []types.AttributeDefinition // key attributes of the table, hash key before range key; nil means hashKey
	Given  []Item                      // items in the table before the requests
	Before []Request                   // requests sent before When; each must succeed
	When   Request
	Want   Reply
	Then   []Item // expected items in the table after the requests, in any order; nil to skip the check
}

// Request is one API request, or a Call that sends several requests.
type Request interface {
	send(ctx context.Context, to target) (Reply, error)
}

// target contains the client that sends a request, and the name of the table that the request
// uses.
type target struct {
	client   *dynamodb.Client
	table    string
	capacity types.ReturnConsumedCapacity
}

// Reply contains the parts of a reply that the tests compare. Parts that the reply lacks are
// zero.
type Reply struct {
	Item     Item
	Items    []Item
	Scanned  int32   // number of items that a Query or Scan has read; zero if the filter kept every item
	Count    int32   // number of items if the request asked only for a count; for a Call, the number that the function returned
	Last     Item    // key after which the next page of a Query or Scan starts; empty on the last page
	Capacity float64 // capacity units that the request consumed; zero unless the request is a Metered
	Detail   string  // additional text that the function of a Call returned
	Err      *Fault
}

// Fault is an error response of DynamoDB.
type Fault struct {
	Code    string
	Text    string   // error text; in a wanted Fault, "…" stands for any characters and {table} for the table's name; "" if any text is accepted
	Item    Item     // item in the table, if a condition on that item has failed and the request asked for the item
	Reasons []Reason // for a cancelled transaction: one reason for each item of the transaction
}

// Reason is the cancellation reason that DynamoDB returns for one item of a cancelled
// transaction.
type Reason struct {
	Code string // "None" if the item has not cancelled the transaction
	Text string
	Item Item
}

// Key schemas of the test tables.
var (
	hashKey       = []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}}
	numberHashKey = []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeN}}
	binaryHashKey = []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeB}}
	rangeKey      = withRange(types.ScalarAttributeTypeS)
	numberRange   = withRange(types.ScalarAttributeTypeN)
	binaryRange   = withRange(types.ScalarAttributeTypeB)
)

func withRange(t types.ScalarAttributeType) []types.AttributeDefinition {
	return append(slices.Clone(hashKey), types.AttributeDefinition{AttributeName: aws.String("sk"), AttributeType: t})
}

// Run runs every case against an engine, as a subtest such as "limits/an expression of 4 KB".
func Run(t *testing.T, e Engine) {
	// The names of tables contain a random text. So two runs on the same server never use the same
	// table.
	run := rand.Text()[:8]
	var n int
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.cases {
				n++
				to := target{client: e.Client, table: fmt.Sprintf("conformance-%s-%d", run, n)}
				t.Run(c.Name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					c.run(ctx, t, differences(e.Name)[s.name+"/"+c.Name], to)
				})
			}
		})
	}
}

// Send sends a request to the given table of the engine. If the request fails, the error is in the
// field Err of the Reply.
func (e Engine) Send(ctx context.Context, table string, r Request) Reply {
	reply, err := r.send(ctx, target{client: e.Client, table: table})
	if err != nil {
		return Reply{Err: fault(err)}
	}
	return reply
}

// CreateTable creates a table whose primary key consists of the string attributes "pk" and
// "sk".
func (e Engine) CreateTable(ctx context.Context, table string) error {
	_, err := e.Client.CreateTable(ctx, creation(table, rangeKey))
	return err
}

func (c Case) run(ctx context.Context, t *testing.T, known *Difference, to target) {
	schema := c.Table
	if schema == nil {
		schema = hashKey
	}
	if _, err := to.client.CreateTable(ctx, creation(to.table, schema)); err != nil {
		t.Fatalf("create the table: %v", err)
	}
	defer func() {
		if _, err := to.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &to.table}); err != nil {
			if gone := new(types.ResourceNotFoundException); !errors.As(err, &gone) {
				t.Errorf("delete the table: %v", err)
			}
		}
	}()
	for _, item := range c.Given {
		if _, err := to.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &to.table, Item: item}); err != nil {
			t.Fatalf("put %s: %v", showItem(item), err)
		}
	}
	for i, r := range c.Before {
		if _, err := r.send(ctx, to); err != nil {
			t.Fatalf("request %d before: %v", i, err)
		}
	}

	want, then := c.Want, c.Then
	if known != nil {
		t.Logf("known difference: %s", known.Why)
		want, then = known.of(c)
	}
	got := Engine{Client: to.client}.Send(ctx, to.table, c.When)
	if !want.matches(got, to.table) {
		t.Errorf("reply\n got %s\nwant %s", got, want)
	}
	if then == nil {
		return
	}
	content, err := Scan{}.send(ctx, to)
	if err != nil {
		t.Fatalf("read the table: %v", err)
	}
	if got, want := showItems(content.Items), showItems(inAnyOrder(then)); got != want {
		t.Errorf("table after\n got %s\nwant %s", got, want)
	}
}

func creation(table string, key []types.AttributeDefinition) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:            &table,
		AttributeDefinitions: key,
		KeySchema:            []types.KeySchemaElement{{AttributeName: key[0].AttributeName, KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	}
	if len(key) == 2 {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: key[1].AttributeName, KeyType: types.KeyTypeRange})
	}
	return in
}

// fault converts an error of the SDK to a Fault.
func fault(err error) *Fault {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return &Fault{Code: "none", Text: err.Error()}
	}
	f := &Fault{Code: api.ErrorCode(), Text: api.ErrorMessage()}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		f.Item = failed.Item
	}
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		for _, r := range canceled.CancellationReasons {
			f.Reasons = append(f.Reasons, Reason{aws.ToString(r.Code), aws.ToString(r.Message), r.Item})
		}
	}
	return f
}

// matches reports whether got, a reply of the engine, equals the wanted reply r.
func (r Reply) matches(got Reply, table string) bool {
	if r.Err == nil || got.Err == nil {
		return r.String() == got.String()
	}
	w, g := *r.Err, *got.Err
	if !textMatches(w.Text, g.Text, table) || len(w.Reasons) != len(g.Reasons) {
		return false
	}
	for i, reason := range w.Reasons {
		if !textMatches(reason.Text, g.Reasons[i].Text, table) || reason.Code != g.Reasons[i].Code ||
			showItem(reason.Item) != showItem(g.Reasons[i].Item) {
			return false
		}
	}
	return w.Code == g.Code && showItem(w.Item) == showItem(g.Item)
}

func textMatches(want, got, table string) bool {
	if want == "" {
		return true
	}
	want = plain(strings.ReplaceAll(want, "{table}", table))
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", "(?s:.*)")
	return regexp.MustCompile("^" + pattern + "$").MatchString(plain(got))
}

// These expressions match parts of error texts that differ between AWS Regions or have changed over
// the years. The parts are the number of errors, as in "1 validation error detected: ", the
// offending value, and the spelling of field names.
var (
	counted = regexp.MustCompile(`^\d+ validation errors? detected: `)
	echoed  = regexp.MustCompile(`^Value (?s:.* )?at '([^']*)' failed to satisfy constraint`)
)

func plain(text string) string {
	text = counted.ReplaceAllString(text, "")
	return echoed.ReplaceAllStringFunc(text, func(s string) string {
		return "Value at '" + strings.ToLower(echoed.FindStringSubmatch(s)[1]) + "' failed to satisfy constraint"
	})
}

func (r Reply) String() string {
	if f := r.Err; f != nil {
		text := fmt.Sprintf("%s %q", f.Code, short(f.Text))
		if f.Item != nil {
			text += " old " + showItem(f.Item)
		}
		for i, reason := range f.Reasons {
			text += fmt.Sprintf("\n     reason %d: %s %q %s", i, reason.Code, reason.Text, showItem(reason.Item))
		}
		return text
	}
	text := fmt.Sprintf("item %s items %s", showItem(r.Item), showItems(r.Items))
	for _, more := range []struct {
		name  string
		value any
		zero  bool
	}{
		{"count", r.Count, r.Count == 0},
		{"scanned", r.Scanned, r.Scanned == 0},
		{"last", showItem(r.Last), len(r.Last) == 0},
		{"capacity", r.Capacity, r.Capacity == 0},
		{"detail", r.Detail, r.Detail == ""},
	} {
		if !more.zero {
			text += fmt.Sprintf(" %s %v", more.name, more.value)
		}
	}
	return text
}

// Outcome returns the reply as text, without error texts.
func (r Reply) Outcome() string {
	if r.Err == nil {
		return r.String()
	}
	bare := Fault{Code: r.Err.Code, Item: r.Err.Item}
	for _, reason := range r.Err.Reasons {
		bare.Reasons = append(bare.Reasons, Reason{Code: reason.Code, Item: reason.Item})
	}
	return Reply{Err: &bare}.String()
}

func showItems(items []Item) string {
	var all []string
	for _, item := range items {
		all = append(all, showItem(item))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// inAnyOrder returns items sorted by their content. Two replies with the same items in
// different orders are equal after sorting.
func inAnyOrder(items []Item) []Item {
	return slices.SortedFunc(slices.Values(items), func(a, b Item) int {
		return strings.Compare(showItem(a), showItem(b))
	})
}

// Functions that return replies that many cases expect.

func invalid(text string) Reply {
	return Reply{Err: &Fault{Code: "ValidationException", Text: text}}
}

func conditionFailed(old Item) Reply {
	return Reply{Err: &Fault{Code: "ConditionalCheckFailedException", Text: "The conditional request failed", Item: old}}
}

func canceled(reasons ...Reason) Reply {
	var codes []string
	for _, r := range reasons {
		codes = append(codes, r.Code)
	}
	text := "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"
	return Reply{Err: &Fault{Code: "TransactionCanceledException", Text: text, Reasons: reasons}}
}
