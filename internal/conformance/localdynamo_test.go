package conformance_test

import (
	"path/filepath"
	"testing"

	"github.com/leasehold-go/leasehold/internal/conformance"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

func TestLocaldynamoInMemoryConformsToDynamoDB(t *testing.T) {
	conform(t, localdynamo.New())
}

func TestLocaldynamoWithFileStoreConformsToDynamoDB(t *testing.T) {
	store := lab.Must(boltstore.Open(filepath.Join(t.TempDir(), "tables.db")))(t)
	conform(t, localdynamo.New(localdynamo.WithStore(store)))
}

func conform(t *testing.T, engine *localdynamo.Engine) {
	t.Helper()
	t.Cleanup(func() { lab.OK(t, engine.Close()) })
	conformance.Run(t, conformance.Engine{Name: "localdynamo", Client: engine.Client()})
}
