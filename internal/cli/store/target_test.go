package store

import (
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

func TestAdviceForMismatchedTableSuggestsFlag(t *testing.T) {
	for _, c := range []struct {
		name      string
		is, asked layout.Layout
		want      string
	}{
		{"partition key", layout.Native{PartitionKey: "id"}, layout.Native{},
			`the partition key is "id", but the layout's is "key": use --attr key=id, or use another table`},
		{"partition key with quotes", layout.Native{PartitionKey: `a "b`}, layout.Native{},
			`the partition key is "a \"b", but the layout's is "key": use --attr 'key=a "b', or use another table`},
		{"sort key", layout.Native{SortKey: "range"}, layout.Native{},
			`the table has the sort key "range", but the layout has none: use --attr sort=range, or use another table`},
		{"no sort key", layout.Native{}, layout.Native{SortKey: "range"},
			`the table has no sort key, but the layout's is "range": leave sort out of --attr, or use another table`},
		{"TTL", layout.Native{TTL: "ends"}, layout.Native{},
			`TTL is on for the attribute "ends", but the layout's is "expiresAt", so released records stay until somebody deletes them, and a record that has the table's may be deleted while it is held: use --attr ttl=ends`},
		{"another layout", layout.DyndbMutex{}, layout.Native{},
			`the partition key is "lockname", but the layout's is "key": this is a table of layout dyndb-mutex: use --layout dyndb-mutex, or use another table`},
		{"one of several layouts", layout.Native{}, layout.DyndbMutex{},
			`the partition key is "key", but the layout's is "lockname": this is a table of layout native or awslabs or dynamolock: use --layout with one of them, or use another table`},
		{"fixed names", layout.Native{PartitionKey: "id"}, layout.DyndbMutex{},
			`the partition key is "id", but the layout's is "lockname": use another table, or another layout`},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := localdynamo.New().Client()
			lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: "locks", Layout: c.is}))
			problems, err := table.Check(t.Context(), db, table.Spec{Name: "locks", Layout: c.asked})
			if err != nil || len(problems) == 0 {
				t.Fatalf("problems %v, %v", problems, err)
			}
			if got := ByFlags(problems[0].What); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
