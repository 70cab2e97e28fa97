package boltstore_test

import (
	"os"
	"testing"

	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

func TestOpenOfExistingStoreWritesNothing(t *testing.T) {
	path, _ := newFile(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	store, err := boltstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(after) != string(before) {
		t.Error("the file has changed")
	}
}
