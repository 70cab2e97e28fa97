package holders_test

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// A client with permission to write only one key can still put 400 KB of data into the record of
// that key. If the option Bare of Listing is set, List must leave out such data.
func TestBareListOmitsAttributesAndLongData(t *testing.T) {
	engine := localdynamo.New()
	defer engine.Close()
	db := engine.Client()
	lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: "locks"}))
	locks := lab.Must(leasehold.New(db, leasehold.Config{Table: "locks"}))(t)
	defer locks.Close(t.Context())
	lab.Must(locks.Acquire(t.Context(), "remark", leasehold.WithData([]byte("deploying v42"))))(t)
	lock := lab.Must(locks.Acquire(t.Context(), "k", leasehold.WithData(bytes.Repeat([]byte("large"), 100)), leasehold.WithAttributes(map[string]types.AttributeValue{"more": &types.AttributeValueMemberS{Value: "of it"}})))(t)
	for _, bare := range []bool{false, true} {
		found, damaged, err := holders.List(t.Context(), locks, holders.Listing{Bare: bare})
		if err != nil || len(damaged) > 0 || len(found) != 2 || found[0].Owner != lock.Record().Owner {
			t.Fatal(found, damaged, err)
		}
		if r := found[0]; (len(r.Data) == 0) != bare || (len(r.Attributes) == 0) != bare {
			t.Errorf("bare: %v: %d bytes of data and %d attributes", bare, len(r.Data), len(r.Attributes))
		}
		lab.Want(t, "remark", string(found[1].Data), "deploying v42")
	}
}
