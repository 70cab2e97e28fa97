package table

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// Check compares the table with spec: key schema, TTL and status. It also finds global-table
// replicas with eventual consistency, and replicas and witnesses that are not active. If Check
// returns no problems, the table fits the spec. If the table does not exist, Check returns an
// error that matches leasehold.ErrTableNotFound.
//
// Problems with TTL and replicas are not fatal. Without TTL, released records stay in the
// table. Replicas do no harm while all clients use the same Region. A table that is strongly
// consistent across Regions cannot have TTL, so Check does not report a missing TTL for it.
func Check(ctx context.Context, db DB, spec Spec) ([]Problem, error) {
	want, err := spec.complete()
	if err != nil {
		return nil, err
	}
	found, err := describe(ctx, db, spec.Name)
	if err != nil {
		return nil, err
	}
	ttl, err := describeTTL(ctx, db, spec.Name)
	if err != nil {
		return nil, err
	}
	problems := append(checkStatus(found), checkKeys(found, spec, want)...)
	if !isStrong(found) || ttlIsOn(ttl) {
		problems = append(problems, checkTTL(ttl, spec, want)...)
	}
	problems = append(problems, checkReplicas(found)...)
	for i, p := range problems {
		problems[i].What = visible.Line(p.What)
	}
	return problems, nil
}

// describeLimit is how long describe and describeTTL wait for a server that never replies. The
// SDK itself has no such limit.
const describeLimit = 10 * time.Second

func describe(ctx context.Context, db DB, name string) (*types.TableDescription, error) {
	within, cancel := context.WithTimeout(ctx, describeLimit)
	defer cancel()
	out, err := db.DescribeTable(within, &dynamodb.DescribeTableInput{TableName: aws.String(name)}, attempts.Bounded)
	if none := (*types.ResourceNotFoundException)(nil); errors.As(err, &none) {
		return nil, fmt.Errorf("table: %s: %w: %w", name, leasehold.ErrTableNotFound, visible.Error(err))
	}
	if err != nil {
		return nil, fmt.Errorf("table: describe %s: %w", name, visible.Error(err))
	}
	if out.Table == nil {
		return nil, fmt.Errorf("table: describe %s: the answer is not DynamoDB's: check proxies and the endpoint", name)
	}
	return out.Table, nil
}

func describeTTL(ctx context.Context, db DB, name string) (*types.TimeToLiveDescription, error) {
	within, cancel := context.WithTimeout(ctx, describeLimit)
	defer cancel()
	out, err := db.DescribeTimeToLive(within, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(name)}, attempts.Bounded)
	if err != nil {
		return nil, fmt.Errorf("table: time to live of %s: %w", name, visible.Error(err))
	}
	return out.TimeToLiveDescription, nil
}

func checkStatus(t *types.TableDescription) []Problem {
	switch t.TableStatus {
	case types.TableStatusActive, types.TableStatusUpdating:
		return nil
	}
	return []Problem{{Fatal: true, About: "status", What: fmt.Sprintf("the table's status is %s: wait until it is ACTIVE", t.TableStatus)}}
}

func checkKeys(t *types.TableDescription, spec Spec, want protocol.Schema) []Problem {
	have := keysOf(t)
	var problems []Problem
	fatal := func(format string, args ...any) {
		problems = append(problems, Problem{Fatal: true, About: "keys", What: fmt.Sprintf(format, args...)})
	}
	if have.Partition != want.Partition {
		fatal("the partition key is %q, but the layout's is %q: %s", have.Partition, want.Partition, spec.fitting(have, "PartitionKey", have.Partition))
	}
	switch {
	case have.Sort == want.Sort:
	case have.Sort == "":
		fatal("the table has no sort key, but the layout's is %q: %s", want.Sort, spec.fitting(have, "SortKey", ""))
	case want.Sort == "":
		fatal("the table has the sort key %q, but the layout has none: %s", have.Sort, spec.fitting(have, "SortKey", have.Sort))
	default:
		fatal("the sort key is %q, but the layout's is %q: %s", have.Sort, want.Sort, spec.fitting(have, "SortKey", have.Sort))
	}
	for _, a := range t.AttributeDefinitions {
		name, wanted := aws.ToString(a.AttributeName), types.ScalarAttributeTypeS
		if name == have.Sort {
			wanted = sortType(want)
		}
		// The type of a key attribute matters only if the attribute has the right name. The code
		// above has reported each wrong name.
		isPartition := want.Partition == have.Partition && name == have.Partition
		isSort := want.Sort == have.Sort && name == have.Sort
		if (isPartition || isSort) && a.AttributeType != wanted {
			fatal("the key attribute %q has type %s, but it must be %s: use another table", name, a.AttributeType, wanted)
		}
	}
	return problems
}

// fitting returns advice for a table with a key that does not fit the spec. The parameter "have" is
// the table's key schema. "name" is the key's name in that schema, if any. "field" is the layout's
// field for the key: PartitionKey or SortKey.
func (s Spec) fitting(have protocol.Schema, field, name string) string {
	const orTable = ", or use another table"
	names := layoutsOf(have)
	set, ok := s.named(field)
	switch {
	case len(names) > 0 && !slices.Contains(names, s.layout().Name()):
		which := "it"
		if len(names) > 1 {
			which = "one of them"
		}
		return fmt.Sprintf("this is a table of layout %s: set Layout to %s%s", strings.Join(names, " or "), which, orTable)
	case !ok, name == "" && set == "":
		return "use another table, or another layout"
	case name == "":
		return fmt.Sprintf("leave %s of the layout unset%s", field, orTable)
	}
	return fmt.Sprintf("set %s of the layout to %q%s", field, name, orTable)
}

// layout returns Spec.Layout or, if this is nil, the default layout.Native{}.
func (s Spec) layout() layout.Layout {
	if s.Layout == nil {
		return layout.Native{}
	}
	return s.Layout
}

// named returns the attribute name in a field of the layout, such as the field PartitionKey. It
// returns false if the layout lacks the field, because the layout has a fixed name for that
// attribute.
func (s Spec) named(field string) (string, bool) {
	v := reflect.ValueOf(s.layout()).FieldByName(field)
	return v.String(), v.IsValid()
}

// keysOf returns the key schema of a table.
func keysOf(t *types.TableDescription) protocol.Schema {
	var have protocol.Schema
	for _, k := range t.KeySchema {
		if k.KeyType == types.KeyTypeHash {
			have.Partition = aws.ToString(k.AttributeName)
		} else {
			have.Sort = aws.ToString(k.AttributeName)
		}
	}
	for _, a := range t.AttributeDefinitions {
		if name := aws.ToString(a.AttributeName); name == have.Sort {
			have.SortNumber = a.AttributeType == types.ScalarAttributeTypeN
		}
	}
	return have
}

// layoutsOf returns the names of the layouts that have the given key schema if their attributes
// have the default names.
func layoutsOf(schema protocol.Schema) []string {
	var names []string
	for _, name := range layout.Names() {
		l, _ := layout.Parse(name) // neither this nor the next call can fail: the layout has a name of Names, and default settings
		proto, _ := records.Of(l)
		s := proto.Schema()
		if s.TTL = ""; s == schema {
			names = append(names, name)
		}
	}
	return names
}

// ttlIsOn reports whether TTL is on or is being turned on.
func ttlIsOn(ttl *types.TimeToLiveDescription) bool {
	return ttl != nil && (ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabled || ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabling)
}

func checkTTL(ttl *types.TimeToLiveDescription, spec Spec, want protocol.Schema) []Problem {
	on := ttlIsOn(ttl)
	switch {
	case !on && want.TTL != "":
		return []Problem{{About: "ttl", What: fmt.Sprintf("TTL is off, so released records stay until somebody deletes them: turn it on for the attribute %q", want.TTL)}}
	case on && want.TTL == "":
		return []Problem{{About: "ttl", What: fmt.Sprintf("TTL is on for the attribute %q, which this layout does not write: a record that has this attribute may be deleted while it is held: turn TTL off, or never write this attribute",
			aws.ToString(ttl.AttributeName))}}
	case on && aws.ToString(ttl.AttributeName) != want.TTL:
		name, advice := aws.ToString(ttl.AttributeName), "use another table"
		if _, ok := spec.named("TTL"); ok {
			advice = fmt.Sprintf("set TTL of the layout to %q", name)
		}
		return []Problem{{About: "ttl", What: fmt.Sprintf("TTL is on for the attribute %q, but the layout's is %q, so released records stay until somebody deletes them, and a record that has the table's may be deleted while it is held: %s",
			name, want.TTL, advice)}}
	}
	return nil
}

// isStrong reports whether a table is strongly consistent across Regions (MRSC). Such a table
// has no TTL (AWS, Developer Guide, "Global tables: multi-Region strong consistency").
func isStrong(t *types.TableDescription) bool {
	return t.MultiRegionConsistency == types.MultiRegionConsistencyStrong
}

// checkReplicas returns one problem if the table has eventually consistent replicas. Two Regions
// can then grant the same key (AWS, Developer Guide, "Global tables: multi-Region eventual
// consistency"). In a strongly consistent table, each inactive replica or witness is a problem.
func checkReplicas(t *types.TableDescription) (problems []Problem) {
	found := func(format string, args ...any) {
		problems = append(problems, Problem{About: "replicas", What: fmt.Sprintf(format, args...)})
	}
	if !isStrong(t) {
		var names []string
		for _, r := range t.Replicas {
			names = append(names, aws.ToString(r.RegionName))
		}
		if len(names) > 0 {
			found("the table is eventually consistent with %s, so two Regions can grant the same key at the same time: use it from one Region only, or use a new table with strong consistency",
				strings.Join(names, ", "))
		}
		return problems
	}
	for _, r := range t.Replicas {
		status := string(r.ReplicaStatus)
		if why := aws.ToString(r.ReplicaStatusDescription); why != "" {
			status += " (" + why + ")"
		}
		if r.ReplicaStatus != types.ReplicaStatusActive {
			found("the replica in %s is %s, so clients that name it do not fail over: wait until it is ACTIVE, or repair it", aws.ToString(r.RegionName), status)
		}
	}
	for _, w := range t.GlobalTableWitnesses {
		if w.WitnessStatus != types.WitnessStatusActive {
			found("the witness in %s is %s, so the table may not outlive the outage of a Region: wait until it is ACTIVE", aws.ToString(w.RegionName), w.WitnessStatus)
		}
	}
	return problems
}
