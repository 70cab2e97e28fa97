package boltstore_test

import (
	"os"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

func TestOpenOfExistingStoreWritesNothing(t *testing.T) {
	path, _ := newFile(t)
	before := lab.Must(os.ReadFile(path))(t)
	store := lab.Must(boltstore.Open(path))(t)
	lab.OK(t, store.Close())
	after := lab.Must(os.ReadFile(path))(t)
	if string(after) != string(before) {
		t.Error("the file has changed")
	}
}
