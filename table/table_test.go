package table_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newDB(t *testing.T) *dynamodb.Client {
	engine := localdynamo.New()
	t.Cleanup(func() { _ = engine.Close() })
	return engine.Client()
}

func TestLockIsGrantedInNewlyCreatedTable(t *testing.T) {
	lab.Variants(t, map[string]layout.Layout{
		"native":              layout.Native{},
		"with sort key":       layout.Native{PartitionKey: "id", SortKey: "range", SortValue: "-"},
		"without TTL":         layout.Native{TTL: "-"},
		"other TTL attribute": layout.Native{TTL: "gone"},
		"default layout":      nil,
	}, func(t *testing.T, l layout.Layout) {
		db, ctx := newDB(t), t.Context()
		spec := table.Spec{Name: "locks", Layout: l}
		lab.OK(t, table.Create(ctx, db, spec))
		if problems, err := table.Check(ctx, db, spec); err != nil || len(problems) > 0 {
			t.Fatalf("check: %v, %v", problems, err)
		}
		locks := lab.Must(leasehold.New(db, leasehold.Config{Table: "locks", Layout: l}))(t)
		lock := lab.Must(locks.Acquire(ctx, "k"))(t)
		lab.OK(t, lock.Release(ctx))
		lab.OK(t, locks.Close(ctx))
	})
}

func TestCreateEnablesTTLAndOnDemandBilling(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	lab.OK(t, table.Create(ctx, db, table.Spec{Name: "locks"}))
	ttl := lab.Must(db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("locks")}))(t)
	lab.Want(t, "TTL attribute", aws.ToString(ttl.TimeToLiveDescription.AttributeName), "expiresAt")
	out := lab.Must(db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("locks")}))(t)
	if out.Table.BillingModeSummary == nil || out.Table.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
		t.Errorf("billing is %+v", out.Table.BillingModeSummary)
	}
}

func TestConcurrentCallsOfCreateDoNotFail(t *testing.T) {
	db := newDB(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { lab.WantErr(t, "create", table.Create(t.Context(), db, table.Spec{Name: "locks"}), nil) })
	}
	wg.Wait()
}

func TestCreateRejectsExistingTableWithWrongPartitionKey(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	lab.OK(t, table.Create(ctx, db, table.Spec{Name: "locks", Layout: layout.Native{PartitionKey: "id", TTL: "-"}}))
	err := table.Create(ctx, db, table.Spec{Name: "locks"})
	lab.WantText(t, "create", err, `the partition key is "id", but the layout's is "key"`)
	ttl := lab.Must(db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("locks")}))(t)
	lab.Want(t, "TTL of the other table", ttl.TimeToLiveDescription.TimeToLiveStatus, types.TimeToLiveStatusDisabled)
}

func TestInvalidSpecIsRejectedBeforeAnyRequest(t *testing.T) {
	for want, spec := range map[string]table.Spec{
		"Spec.Name is empty": {},
		"ReadUnits is 5":     {Name: "locks", ReadUnits: 5},
		"is already used as": {Name: "locks", Layout: layout.Native{PartitionKey: "a", SortKey: "a"}},
	} {
		lab.WantText(t, "create", table.Create(t.Context(), nil, spec), want)
	}
}

// describing is a DynamoDB client that returns prepared descriptions of a table and of the
// table's TTL setting.
type describing struct {
	*dynamodb.Client
	table *types.TableDescription
	ttl   *types.TimeToLiveDescription
	err   error // error that DescribeTable returns instead; nil for none
}

func (d describing) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: d.table}, d.err
}

func (d describing) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: d.ttl}, nil
}

func key(name string, kind types.KeyType) types.KeySchemaElement {
	return types.KeySchemaElement{AttributeName: aws.String(name), KeyType: kind}
}

func attribute(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind}
}

// fitting returns the description of a table that fits the native layout.
func fitting() describing {
	return describing{
		table: &types.TableDescription{
			TableStatus:          types.TableStatusActive,
			KeySchema:            []types.KeySchemaElement{key("key", types.KeyTypeHash)},
			AttributeDefinitions: []types.AttributeDefinition{attribute("key", types.ScalarAttributeTypeS)},
		},
		ttl: &types.TimeToLiveDescription{AttributeName: aws.String("expiresAt"), TimeToLiveStatus: types.TimeToLiveStatusEnabled},
	}
}

func TestCheckReportsEachMismatchOfTableAndSpec(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*describing)
		layout layout.Layout
		fatal  bool
		want   string // text that the reported problem contains; empty if the table fits the layout
		about  string
	}{
		{name: "fitting table", spoil: func(*describing) {}},
		{name: "TTL just turned on", spoil: func(d *describing) { d.ttl.TimeToLiveStatus = types.TimeToLiveStatusEnabling }},
		{name: "other partition key", fatal: true, about: "keys", want: `the partition key is "id", but the layout's is "key": set PartitionKey of the layout to "id", or use another table`,
			spoil: func(d *describing) { d.table.KeySchema[0] = key("id", types.KeyTypeHash) }},
		{name: "other partition key than fixed one of layout", fatal: true, about: "keys", layout: layout.DyndbMutex{}, want: `the layout's is "lockname": use another table, or another layout`,
			spoil: func(d *describing) {
				d.table.KeySchema[0], d.ttl.AttributeName = key("id", types.KeyTypeHash), aws.String("ttl")
			}},
		{name: "numeric partition key", fatal: true, about: "keys", want: `"key" has type N`,
			spoil: func(d *describing) { d.table.AttributeDefinitions[0] = attribute("key", types.ScalarAttributeTypeN) }},
		{name: "unexpected sort key", fatal: true, about: "keys", want: `the table has the sort key "range", but the layout has none: set SortKey of the layout to "range", or use another table`,
			spoil: func(d *describing) { d.table.KeySchema = append(d.table.KeySchema, key("range", types.KeyTypeRange)) }},
		{name: "missing sort key", fatal: true, about: "keys", want: `the table has no sort key, but the layout's is "range": leave SortKey of the layout unset, or use another table`,
			layout: layout.Native{SortKey: "range"}, spoil: func(*describing) {}},
		{name: "other sort key", fatal: true, about: "keys", want: `the sort key is "other", but the layout's is "range": set SortKey of the layout to "other", or use another table`, layout: layout.Native{SortKey: "range"},
			spoil: func(d *describing) { d.table.KeySchema = append(d.table.KeySchema, key("other", types.KeyTypeRange)) }},
		{name: "being deleted", fatal: true, about: "status", want: "status is DELETING",
			spoil: func(d *describing) { d.table.TableStatus = types.TableStatusDeleting }},
		{name: "no TTL", about: "ttl", want: "TTL is off", spoil: func(d *describing) { d.ttl.TimeToLiveStatus = types.TimeToLiveStatusDisabled }},
		{name: "TTL on other attribute", about: "ttl", want: `TTL is on for the attribute "ttl"`, spoil: func(d *describing) { d.ttl.AttributeName = aws.String("ttl") }},
		{name: "TTL that may delete held locks", about: "ttl", want: `may be deleted while it is held: set TTL of the layout to "ttl"`, spoil: func(d *describing) { d.ttl.AttributeName = aws.String("ttl") }},
		{name: "TTL not in spec", about: "ttl", want: `TTL is on for the attribute "expiresAt"`, layout: layout.Native{TTL: "-"}, spoil: func(*describing) {}},
		{name: "a global table", about: "replicas", want: "the table is eventually consistent with eu-west-1, so two Regions can grant the same key at the same time: use it from one Region only, or use a new table with strong consistency",
			spoil: func(d *describing) {
				d.table.Replicas = []types.ReplicaDescription{{RegionName: aws.String("eu-west-1")}}
			}},
		{name: "a strong global table", spoil: func(d *describing) { d.becomeStrong() }},
		{name: "a replica that is not ready", about: "replicas", want: "the replica in eu-west-1 is REGION_DISABLED (it was switched off), so clients that name it do not fail over: wait until it is ACTIVE, or repair it",
			spoil: func(d *describing) {
				d.becomeStrong()
				d.table.Replicas[0].ReplicaStatus, d.table.Replicas[0].ReplicaStatusDescription = types.ReplicaStatusRegionDisabled, aws.String("it was switched off")
			}},
		{name: "a witness that is not ready", about: "replicas", want: "the witness in eu-west-2 is CREATING, so the table may not outlive the outage of a Region: wait until it is ACTIVE",
			spoil: func(d *describing) {
				d.becomeStrong()
				d.table.GlobalTableWitnesses[0].WitnessStatus = types.WitnessStatusCreating
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := fitting()
			c.spoil(&db)
			problems, err := table.Check(t.Context(), db, table.Spec{Name: "locks", Layout: c.layout})
			switch {
			case err != nil:
				t.Fatal(err)
			case c.want == "" && len(problems) == 0:
			case len(problems) != 1 || c.want == "" || problems[0].Fatal != c.fatal || problems[0].About != c.about || !strings.Contains(problems[0].What, c.want):
				t.Errorf("problems: %+v", problems)
			}
		})
	}
}

// becomeStrong changes the description to a strongly consistent global table with two
// replicas and a witness.
func (d *describing) becomeStrong() {
	d.table.MultiRegionConsistency = types.MultiRegionConsistencyStrong
	d.table.Replicas = []types.ReplicaDescription{{RegionName: aws.String("eu-west-1"), ReplicaStatus: types.ReplicaStatusActive}}
	d.table.GlobalTableWitnesses = []types.GlobalTableWitnessDescription{{RegionName: aws.String("eu-west-2"), WitnessStatus: types.WitnessStatusActive}}
	d.ttl.TimeToLiveStatus = types.TimeToLiveStatusDisabled
}

func TestCreateSkipsTTLOfStronglyConsistentTable(t *testing.T) {
	db := fitting()
	db.becomeStrong()
	db.Client = newDB(t) // this client has no table, so a request fails unless describing answers it
	lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: "locks"}))
}

func TestCheckReturnsErrTableNotFound(t *testing.T) {
	_, err := table.Check(t.Context(), newDB(t), table.Spec{Name: "locks"})
	if !errors.Is(err, leasehold.ErrTableNotFound) || !strings.Contains(err.Error(), "locks") {
		t.Errorf("check: %v", err)
	}
}

func TestCheckSuggestsLayoutThatFitsTable(t *testing.T) {
	db := localdynamo.New().Client()
	const three = "native or awslabs or dynamolock"
	sharing := map[string]string{"native": three, "awslabs": three, "dynamolock": three}
	for _, is := range layout.Names() {
		l := lab.Must(layout.Parse(is))(t)
		lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: is, Layout: l}))
		for _, asked := range layout.Names() {
			other := lab.Must(layout.Parse(asked))(t)
			problems := lab.Must(table.Check(t.Context(), db, table.Spec{Name: is, Layout: other}))(t)
			fits := asked == is || sharing[is] != "" && sharing[is] == sharing[asked]
			names, which := is, "it"
			if sharing[is] != "" {
				names, which = sharing[is], "one of them"
			}
			named := 0
			for _, p := range problems {
				if p.Fatal && strings.Contains(p.What, "this is a table of layout "+names+": set Layout to "+which+", or use another table") {
					named++
				} else if p.Fatal {
					t.Errorf("a table of %s for %s: %s", is, asked, p.What)
				}
			}
			lab.Want(t, fmt.Sprintf("a table of %s for %s fits", is, asked), fits, (named == 0))
		}
	}
}

// acts is a text whose control characters make a terminal perform actions.
const acts = "\x1b]0;x\a\u009b2J\u202e\n"

func TestCheckEscapesControlCharactersInReplyOfDynamoDB(t *testing.T) {
	acting := describing{
		table: &types.TableDescription{TableStatus: "S" + acts, KeySchema: []types.KeySchemaElement{key("a"+acts, types.KeyTypeHash)}},
		ttl:   &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabled, AttributeName: aws.String("t" + acts)},
	}
	problems, err := table.Check(t.Context(), acting, table.Spec{Name: "locks"})
	if err != nil || len(problems) < 3 {
		t.Fatalf("%d problems, %v", len(problems), err)
	}
	for _, p := range problems {
		lab.Want(t, p.About, visible.Line(p.What), p.What)
	}
	acting.err = &smithy.GenericAPIError{Code: "C", Message: acts}
	_, err = table.Check(t.Context(), acting, table.Spec{Name: "locks"})
	lab.Want(t, "visible text", visible.Line(err.Error()), err.Error())
}

func TestFunctionsCheckAndCreateRejectOverlongReplyOfDynamoDB(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, err := io.WriteString(w, `{"Table":{"TableName":"`)
		for chunk := strings.Repeat("a", 1<<20); err == nil; {
			_, err = io.WriteString(w, chunk)
		}
	}))
	defer server.Close()
	db := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), Credentials: aws.AnonymousCredentials{}, HTTPClient: server.Client(), Retryer: aws.NopRetryer{},
	})
	_, checked := table.Check(t.Context(), db, table.Spec{Name: "locks"})
	for name, err := range map[string]error{"Check": checked, "Create": table.Create(t.Context(), db, table.Spec{Name: "locks"})} {
		lab.WantText(t, name, err, "longer than any of DynamoDB's")
	}
}

func TestTemplatesContainTagsInSortedOrder(t *testing.T) {
	tags := map[string]string{}
	for i := range 50 { // AWS allows at most 50 tags
		tags[fmt.Sprintf("tag-%02d", i)] = "value"
	}
	spec := table.Spec{Name: "locks", Tags: tags}
	for name, text := range map[string]func() string{"CloudFormation": spec.CloudFormation, "Terraform": spec.Terraform} {
		var lines []string
		for line := range strings.Lines(text()) {
			if strings.Contains(line, "tag-") {
				lines = append(lines, line)
			}
		}
		if len(lines) != len(tags) || !slices.IsSorted(lines) {
			t.Errorf("%s: tags are not in order: %q", name, lines)
		}
	}
}
