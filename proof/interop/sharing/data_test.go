//go:build linux

package sharing

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

func TestOtherLibraryAndLeaseholdReadDataOfEachOther(t *testing.T) {
	matches(t, time.Hour, func(t *testing.T, m match) {
		m.bothWays(t, func(t *testing.T, first, second peers.Peer, key string) {
			writer, reader := m.run(t, first), m.run(t, second)
			acquire := peers.Request{Do: "acquire", Key: key, Data: []byte("some data")}
			if m.peer.Name != peers.AWSLabs.Name && m.peer.Name != peers.Dynamolock.Name {
				acquire.Data = nil // this peer's layout stores no data
			}
			if m.peer.Layout != peers.DynamoDLM.Layout && m.peer.Layout != peers.DyndbMutex.Layout {
				acquire.Attributes = peers.Attributes{
					"colour": &types.AttributeValueMemberS{Value: "red"},
					"shelf":  &types.AttributeValueMemberN{Value: "3"},
					"parts": &types.AttributeValueMemberL{Value: []types.AttributeValue{
						&types.AttributeValueMemberB{Value: []byte("x")},
					}},
				}
			}
			held := writer.Must(t, acquire)
			reply, err := reader.Ask(t, peers.Request{Do: "get", Key: key})
			if errors.Is(err, peers.ErrUnsupported) {
				t.Skip(second.Name, "has nothing that reads a lock")
			}
			if err != nil {
				t.Fatal(err)
			}
			same(t, reply.Record, held.Record, acquire)

			list, err := reader.Ask(t, peers.Request{Do: "list"})
			switch {
			case errors.Is(err, peers.ErrUnsupported): // the reader's library cannot list locks
			case err != nil:
				t.Error(err)
			default:
				i := slices.IndexFunc(list.Records, func(r peers.Record) bool { return r.Key == key })
				if i < 0 {
					t.Fatalf("the listing shows %d records, none of %s", len(list.Records), key)
				}
				same(t, &list.Records[i], held.Record, acquire)
			}
			writer.Release(t, held.ID)
			// A record may remain after the release. The reader must be able to read it too.
			if _, err := reader.Ask(t, peers.Request{Do: "get", Key: key}); err != nil {
				t.Errorf("get after the release: %v", err)
			}
			if _, err := reader.Ask(t, peers.Request{Do: "list"}); err != nil && !errors.Is(err, peers.ErrUnsupported) {
				t.Errorf("list after the release: %v", err)
			}
		})
	})
}

// same compares a record with the granted lock and the written data. It ignores all other
// attributes, because some libraries return every attribute of an item, including
// leasehold's own.
func same(t *testing.T, got, held *peers.Record, written peers.Request) {
	t.Helper()
	if got == nil {
		t.Fatal("there is no record")
	}
	if held.Owner != "" && got.Owner != held.Owner && got.Owner != held.Owner+"/"+held.Version {
		t.Errorf("owner %q, want %q", got.Owner, held.Owner)
	}
	if !bytes.Equal(got.Data, written.Data) {
		t.Errorf("data %q, want %q", got.Data, written.Data)
	}
	for name, want := range written.Attributes {
		if !equal(got.Attributes[name], want) {
			t.Errorf("attribute %s is %#v, want %#v", name, got.Attributes[name], want)
		}
	}
}

func equal(a, b types.AttributeValue) bool { return a != nil && reflect.DeepEqual(a, b) }
