package records_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// golden is the content of a file in testdata/golden: a request to a peer (another lock library),
// and the items that the peer stored. Most files were recorded from the peers themselves
// (proof/interop/cmd/record). The files for dynamolock were written by hand from its source code.
type golden struct {
	Peer     string
	Recorded bool
	State    string // held, released or absent
	Owner    string // owner that was given to the peer; empty if the peer has no owners
	LeaseMS  int64
	SortKey  string // name of the sort key attribute; empty for the default
	Items    []json.RawMessage

	folder string
}

// goldenRecord is one item of a golden file. The item is stored in a table
// whose layout must be able to read it.
type goldenRecord struct {
	*bench
	golden
	stored protocol.Item // item that the peer stored; nil if it stored none
}

// goldenFiles returns the content of the golden files, by path.
func goldenFiles(t testing.TB) map[string]golden {
	t.Helper()
	files := map[string]golden{}
	for _, path := range lab.Must(filepath.Glob("testdata/golden/*/*.json"))(t) {
		g := golden{folder: filepath.Base(filepath.Dir(path))}
		lab.OK(t, json.Unmarshal(lab.Must(os.ReadFile(path))(t), &g))
		files[path] = g
	}
	if len(files) == 0 {
		t.Fatal("no golden records")
	}
	return files
}

// onEachGolden runs a test for every item of every golden file, once for each layout that must
// be able to read the file.
func onEachGolden(t *testing.T, test func(t *testing.T, r goldenRecord)) {
	folders := map[string]bool{}
	for path, g := range goldenFiles(t) {
		folders[g.folder] = true
		if (g.State == absent) != (len(g.Items) == 0) {
			t.Errorf("%s: %d items, but the state is %s", path, len(g.Items), g.State)
		}
		if !g.Recorded && g.folder != "dynamolock" {
			t.Errorf("%s: not recorded, although the peer can be installed", path)
		}
		items := append(slices.Clone(g.Items), nil)[:max(1, len(g.Items))]
		for _, l := range g.layouts(t) {
			for i, item := range items {
				name := fmt.Sprintf("%s/%s/%s/%d", g.folder, strings.TrimSuffix(filepath.Base(path), ".json"), l.Name(), i)
				t.Run(name, func(t *testing.T) {
					b := newBench(t, l)
					b.key = protocol.Key{Partition: "k"}
					r := goldenRecord{bench: b, golden: g}
					if item != nil {
						r.put(item)
					}
					test(t, r)
				})
			}
		}
	}
	lab.Want(t, "folders of peers", len(folders), len(peerWrites))
}

// layouts returns the layouts that must read the file: the layout of the peer, and layout native if
// users may migrate to it.
func (g golden) layouts(t *testing.T) []layout.Layout {
	switch g.folder {
	case "awslabs":
		return []layout.Layout{layout.AWSLabs{SortKey: g.SortKey}, layout.Native{SortKey: g.SortKey}}
	case "dynamolock":
		return []layout.Layout{layout.Dynamolock{SortKey: g.SortKey}, layout.Native{SortKey: g.SortKey}}
	}
	return []layout.Layout{lab.Must(layout.Parse(g.folder))(t)}
}

// put stores one item of the file in an empty table, and then reads it back.
func (r *goldenRecord) put(item json.RawMessage) {
	r.Helper()
	request := lab.Must(http.NewRequestWithContext(r.Context(), http.MethodPost, "http://localdynamo",
		strings.NewReader(`{"TableName":"locks","Item":`+string(item)+`}`)))(r)
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	reply := lab.Must(r.engine.RoundTrip(request))(r)
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(reply.Body)
		r.Fatalf("put: %s: %s", reply.Status, said)
	}
	var attributes map[string]map[string]any // value of each attribute, by name and type
	lab.OK(r, json.Unmarshal(item, &attributes))
	for _, v := range attributes[r.Schema().Sort] {
		r.key.Sort = v.(string)
	}
	if r.stored = r.item(); r.stored == nil {
		r.Fatalf("no item under %v", r.lockKey())
	}
}

// clocked returns the time at which the record expires, or the zero time if the
// record has no expiry.
func (r goldenRecord) clocked() time.Time {
	for name, unit := range map[string]time.Duration{"expires": time.Second, "expire_ts": time.Millisecond} {
		if v, ok := r.stored[name].(*types.AttributeValueMemberN); ok {
			n := lab.Must(strconv.ParseInt(v.Value, 10, 64))(r)
			return time.UnixMilli(n * unit.Milliseconds())
		}
	}
	return time.Time{}
}

// written maps the name of an attribute to a regular expression for the value that a peer
// writes. The expression matches the text that spelt returns.
type written map[string]string

// peerWrites describes the attributes that each peer writes and needs. The map keys are the
// folders of the golden files.
var peerWrites = map[string]struct {
	shows   written
	version string // name of the version attribute
}{
	"awslabs": {version: "recordVersionNumber", shows: written{
		"key": `S .+`, "ownerName": `S .+`, "leaseDuration": `S \d+`, "recordVersionNumber": `S [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`,
	}},
	"dynamolock": {version: "recordVersionNumber", shows: written{
		"key": `S .+`, "ownerName": `S .+`, "leaseDuration": `S (\d+(\.\d+)?(h|m|s|ms))+`,
		"recordVersionNumber": `S (\d{19}:[A-Z2-7]{51}[AQ]|[0-9a-zA-Z]{32})`,
	}},
	"python-dynamodb-lock": {version: "record_version_number", shows: written{
		"lock_key": `S .+`, "sort_key": `S .+`, "owner_name": `S .+`, "lease_duration": `N \d+(\.\d+)?`, "expiry_time": `N \d{10}`,
		"record_version_number": `S [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`,
	}},
	"dynamo-dlm": {version: "release_code", shows: written{
		"resource_id": `S .+`, "concurrency_id": `N \d+`, "expires": `N \d{10}`, "release_code": `S [0-9a-f]{32}`,
	}},
	"dyndb-mutex": {version: "expire_ts", shows: written{
		"lockname": `S .+`, "holder": `S .+`, "expire_ts": `N \d{13}`, "ttl": `N \d+`,
	}},
}

// spelt returns an attribute value as text: the letter of its type, a space and the value. The
// regular expressions in a map of the type "written" match this text.
func spelt(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "S " + v.Value
	case *types.AttributeValueMemberN:
		return "N " + v.Value
	}
	return fmt.Sprintf("%T", v)
}

func spell(item protocol.Item) written {
	all := written{}
	for name, v := range item {
		all[name] = spelt(v)
	}
	return all
}

// finds fails the test unless the item has all attributes that the peer needs, in the peer's form.
// The exception is a version that leasehold wrote: it may be any string. In layout dynamo-dlm even
// the version must have the peer's form, because people read it as the release code.
func (r goldenRecord) finds(what string, item protocol.Item) {
	r.Helper()
	for name, want := range peerWrites[r.folder].shows {
		if what != asStored && name == peerWrites[r.folder].version && strings.HasPrefix(want, "S") && r.folder != "dynamo-dlm" {
			want = "S .+"
		}
		switch {
		case what == released && r.folder == "dyndb-mutex" && name == "ttl":
			continue // the peer removes this attribute on release, so it need not be there
		case what == released && r.folder == "dyndb-mutex" && name == "expire_ts":
			want = "N 0"
		case what == released && r.folder == "dyndb-mutex" && name == "holder":
			want = "S __empty__"
		}
		if got := spelt(item[name]); !regexp.MustCompile("^" + want + "$").MatchString(got) {
			r.Errorf("%s: %s is %s, the peer writes %s", what, name, got, want)
		}
	}
	if marked := item["isReleased"] != nil; marked != (what == released || what == asStored && r.State == released) && r.Schema().Partition == "key" {
		r.Errorf("%s: has isReleased: %v", what, marked)
	}
}

const (
	asStored = "as the peer left it"
	held     = "held"
)

// notTheCallers returns the names of the attributes that belong to the peer or to leasehold. All
// other attributes belong to the program that calls the peer.
func (r goldenRecord) notTheCallers() []string {
	names := []string{r.SortKey, "isReleased", "data", "fencingToken", "grantId", "grantedAt", "lastBreak", "lastTakeover", "expiresAt"}
	for name := range peerWrites[r.folder].shows {
		names = append(names, name)
	}
	return names
}

// callers returns those attributes of an item that the peer's caller has added to the item.
func (r goldenRecord) callers(item protocol.Item) protocol.Item {
	var found protocol.Item
	for name, v := range item {
		if !slices.Contains(r.notTheCallers(), name) {
			if found == nil {
				found = protocol.Item{}
			}
			found[name] = v
		}
	}
	return found
}

func TestGoldenRecordDecodesToValuesInGoldenFile(t *testing.T) {
	onEachGolden(t, func(t *testing.T, g goldenRecord) {
		if g.stored == nil {
			return
		}
		if g.State == held || g.folder != "dyndb-mutex" {
			g.finds(asStored, g.stored)
		} else {
			g.finds(released, g.stored)
		}
		r := g.record()
		lab.Want(t, "key", r.Key, g.lockKey())
		lab.Want(t, "partition key", r.Key.Partition, "k")
		lab.Want(t, "released", r.Released, (g.State == released))
		// The peer may have copied leasehold's token or grant id into its own grant. The decoder
		// must not treat that grant as leasehold's.
		if r.Token != 0 || r.Grant != "" || r.Session != "" || !r.GrantedAt.IsZero() {
			t.Errorf("decoded as a grant by leasehold: %+v", r)
		}
		if g.folder == "dyndb-mutex" && r.Released {
			return // a free record of this layout has no owner, version or lease
		}
		lab.Want(t, "owner", r.Owner, g.Owner)
		if _, want, _ := strings.Cut(spelt(g.stored[peerWrites[g.folder].version]), " "); r.Version != want {
			t.Errorf("version %q, want %q", r.Version, want)
		}
		expires := g.clocked()
		if lease := time.Duration(g.LeaseMS) * time.Millisecond; expires.IsZero() && r.Lease != lease {
			t.Errorf("lease %v, want %v", r.Lease, lease)
		}
		if g.Name() == "native" && g.stored["expiresAt"] != nil {
			expires = r.ExpiresAt // in layout native, this expiry only tells TTL when it may delete the record
			if expires.IsZero() {
				t.Error("the record has no expiry")
			}
		}
		if !r.ExpiresAt.Equal(expires) {
			t.Errorf("expires %v, want %v", r.ExpiresAt, expires)
		}
		var data []byte
		if b, ok := g.stored["data"].(*types.AttributeValueMemberB); ok {
			data = b.Value
		}
		lab.Want(t, "data", r.Data, data)
		if want := g.callers(g.stored); !reflect.DeepEqual(r.Attributes, want) {
			t.Errorf("attributes %v, want %v", spell(r.Attributes), spell(want))
		}
	})
}

// take grants the key. If the record is held, the grant is a takeover from a
// holder that counts as dead.
func (r goldenRecord) take() protocol.Hold {
	r.Helper()
	g := r.grant(g1)
	if r.State == held {
		dead := r.record()
		g.Dead = &dead
		if r.isByClock() {
			g.Now = dead.ExpiresAt.Add(r.Skew() + r.Capabilities().LeaseStep)
		}
	}
	r.must(r.Grant(g))
	return protocol.Hold{Key: g.Key, Owner: owner, Grants: []string{g1}, Token: r.record().Token, Versions: []string{g1}}
}

func TestKeyOfGoldenRecordIsNotGrantedIfItsHolderMayBeAlive(t *testing.T) {
	onEachGolden(t, func(t *testing.T, r goldenRecord) {
		plain := r.grant(g9)
		if r.isByClock() && r.State == held {
			// Both grants below are sent after the record has expired. DynamoDB must still reject
			// them: neither is a takeover, because the field Dead is nil.
			plain.Now = r.clocked().Add(time.Hour)
		}
		existing := plain
		existing.IfExists = true
		switch r.State {
		case held:
			for _, g := range []protocol.Grant{plain, existing} {
				r.rejects(r.Grant(g), "a held record was granted; IfExists: %v", g.IfExists)
			}
			seen := r.record()
			g := plain
			g.Dead = &seen
			if r.isByClock() {
				g.Now = r.clocked().Add(r.Skew() + r.Capabilities().LeaseStep - time.Nanosecond)
				r.rejects(r.Grant(g), "taken over before the lease has expired by every clock")
				g.Now = plain.Now
			}
			g.Dead.Version = "1"
			r.rejects(r.Grant(g), "taken over although the version has changed")
		case absent:
			r.rejects(r.Grant(existing), "granted without a record, despite IfExists")
		}
		h := r.take()
		now := r.record()
		if now.Released || now.Owner != owner && r.Owned() || now.Grant != g1 {
			t.Errorf("granted, but decoded as %+v", now)
		}
		if carried, ok := r.stored["fencingToken"].(*types.AttributeValueMemberN); ok {
			if want := carried.Value; fmt.Sprint(h.Token-1) != want {
				t.Errorf("token %d after %s", h.Token, want)
			}
		}
		lab.Want(t, "time when TTL may delete a held record", r.item()["expiresAt"], nil)
	})
}

func TestLeaseholdKeepsAttributesThatOtherLockLibraryNeeds(t *testing.T) {
	onEachGolden(t, func(t *testing.T, r goldenRecord) {
		if r.Name() == "native" && r.folder == "dynamolock" {
			return // skipped: layout native writes leases as the Java client does, which dynamolock cannot read
		}
		keeps := r.Capabilities().KeepOnRelease
		left := func(item protocol.Item) {
			t.Helper()
			switch {
			case keeps:
				r.finds(released, item)
				if want := r.callers(r.stored); !reflect.DeepEqual(r.callers(item), want) {
					t.Errorf("the caller's attributes are %v, were %v", r.callers(item), want)
				}
			case item != nil:
				t.Errorf("%s has no released records, but the table contains %v", r.Peer, spell(item))
			}
		}
		if r.State == held {
			r.must(r.Break(r.record(), protocol.Break{Version: v9, Expires: granted.Add(time.Hour), By: "operator", At: granted, Reason: "stuck"}))
			left(r.item())
			r.bench.put(r.stored)
		}
		h := r.take()
		r.finds("granted", r.item())
		r.must(r.Renew(h, protocol.Renewal{Version: v2, Lease: 90*time.Second + time.Millisecond, Now: granted}))
		r.finds("renewed", r.item())
		h.Versions = []string{v2}
		r.must(r.Release(h, protocol.Release{Version: v3, Expires: granted.Add(time.Hour)}))
		left(r.item())
	})
}
