package layouttest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

func damageChecks() []check {
	return []check{
		{claim: "a damaged record of leasehold is reported and left unchanged", hold: damagedOurs},
		{claim: "a damaged record of a peer is reported and left unchanged", hold: damagedPeers},
		{claim: "an error about a user's attribute does not advise a break", hold: keptAlive},
		{claim: "a released record with an invalid kind or token is never granted", hold: damagedFree},
		{claim: "a released record is granted despite damage that a grant repairs", hold: mended},
	}
}

// damage is a bad value of one attribute.
type damage struct {
	attribute string
	value     types.AttributeValue // nil means that the attribute is missing
}

var (
	null   = &types.AttributeValueMemberNULL{Value: true}
	truth  = &types.AttributeValueMemberBOOL{Value: true}
	huge   = decimal("99999999999999999999")
	aMap   = &types.AttributeValueMemberM{Value: Item{"x": text("y")}}
	broken = decimal("1.5")
)

// The function "each" returns a damage for each of the given bad values of an attribute.
func each(attribute string, values ...types.AttributeValue) []damage {
	out := make([]damage, len(values))
	for i, v := range values {
		out[i] = damage{attribute, v}
	}
	return out
}

func join(all ...[]damage) (out []damage) {
	for _, d := range all {
		out = append(out, d...)
	}
	return out
}

// The method "damages" returns two lists of bad attribute values for the record of a held key.
// Values in the first list make any record invalid. Values in the second list make only records of
// leasehold invalid, not records of other lock libraries.
func (s Subject) damages() (common, ours []damage) {
	common = join(
		each("fencingToken", text("42"), decimal("-1"), broken, huge, decimal("9007199254740991"), null),
		each("kind", text("of a later format"), text("session"), decimal("2"), null),
	)
	ours = join(
		each("grantId", nil, decimal("1"), text(""), null, aMap),
		each("fencingToken", nil),
	)
	javas := join(
		each("ownerName", nil, decimal("1"), null),
		each("recordVersionNumber", nil, decimal("1"), text(""), aMap),
		each("leaseDuration", nil, decimal("20000"), text("soon"), text(""), null),
		each("isReleased", text("0"), text("true"), text(""), decimal("1"), truth, null),
		each("data", text("not binary"), null),
	)
	granted := each("grantedAt", text("now"), broken, null)
	lease := each("leaseDuration", text("0"), text("-5"), text("0s"), text("-1s"))
	switch s.Layout.Name() {
	case "native":
		common, ours = append(common, javas...), join(ours, granted, lease)
		if s.ttl != "" {
			ours = append(ours, each(s.ttl, text("never"), broken)...)
		}
	case "awslabs", "dynamolock":
		common, ours = append(common, javas...), join(ours, granted, lease)
	case "python-dynamodb-lock":
		ours = join(ours, granted, each("lease_duration", decimal("0"), decimal("-1")))
		common = append(common, join(
			each("owner_name", nil, decimal("1"), null),
			each("record_version_number", nil, decimal("1"), text(""), aMap),
			each("lease_duration", nil, text("30"), text("30s"), null),
			each(s.ttl, nil, text("never"), broken, null),
		)...)
	case "dynamo-dlm":
		common = append(common, join(
			each("release_code", nil, decimal("1"), text(""), null),
			each("expires", nil, text("1764230400"), null),
		)...)
	case "dyndb-mutex":
		common = append(common, join(
			each("holder", nil, decimal("1"), null),
			each("expire_ts", nil, text("1764230400000"), null),
		)...)
	}
	return common, ours
}

// The method "another" returns a record of a different layout, and the name of an attribute that
// the record lacks. A client with the layout of s that reads the record must return an error with
// this name.
func (s Subject) another() (Item, string) {
	switch s.Layout.Name() {
	case "python-dynamodb-lock":
		return javaLike("java-host", "20000"), "owner_name"
	case "dynamo-dlm":
		return javaLike("java-host", "20000"), "release_code"
	case "dyndb-mutex":
		return javaLike("java-host", "20000"), "holder"
	}
	return dlm.grant("", patience, time.Now()), "ownerName"
}

func damagedOurs(e *env) {
	c, _ := e.client()
	lock := e.acquire(c, leasehold.WithoutRenewal())
	held := e.item()
	if _, err := lock.Detach(); err != nil {
		e.Fatal(err)
	}
	e.remove()
	common, ours := e.damages()
	e.damaged(held, append(common, ours...))
}

func damagedPeers(e *env) {
	common, _ := e.damages()
	e.damaged(e.granted(e.key, "a-peer", patience), common)
	if e.isByClock() {
		e.damaged(e.granted(e.key, "a-peer", -time.Hour), common) // the damaged record of a dead peer
	}

	item, attribute := e.another()
	c, _ := e.client()
	e.put(e.record(e.key, item))
	e.refuses(c, e.key, attribute)
}

// keptAlive adds a user's attribute to the record of a live lock, under a name that leasehold
// itself uses. The error of TryAcquire must then advise renaming the attribute, not breaking the
// lock. keptAlive checks locks of leasehold and of peers.
func keptAlive(e *env) {
	c, _ := e.client()
	lock := e.acquire(c, leasehold.WithoutRenewal())
	ours := e.item()
	if _, err := lock.Detach(); err != nil {
		e.Fatal(err)
	}
	e.remove()
	names := map[string]types.AttributeValue{"kind": text("invoice"), "fencingToken": text("none")}
	if e.peer.freed != nil && e.Layout.Name() != "dyndb-mutex" {
		names["isReleased"] = text("no")
	}
	for name, value := range names {
		for _, held := range []Item{e.granted(e.key, "a-peer", patience), ours} {
			if name == "fencingToken" && held["grantId"] != nil {
				continue // skipped: leasehold's own record is invalid without its token, so the error cannot advise renaming
			}
			e.put(with(held, Item{name: value}))
			_, err := c.TryAcquire(e.within(patience), e.key)
			if err == nil || strings.Contains(err.Error(), "leasehold break") || !strings.Contains(err.Error(), "rename the attribute") {
				e.Errorf("%s beside a live lock: %v", name, err)
			}
			e.remove()
		}
	}
}

// damaged checks that leasehold refuses a record with any of the damages. It also checks that a
// listing still yields the undamaged record beside the damaged records.
func (e *env) damaged(sound Item, all []damage) {
	e.Helper()
	c, _ := e.client()
	want := map[string]string{}
	for i, d := range all {
		key := fmt.Sprintf("%s/%03d", e.key, i)
		item := with(sound, Item{d.attribute: d.value})
		maps.Copy(item, e.keyItem(key))
		e.put(item)
		e.refuses(c, key, d.attribute)
		want[key] = d.attribute
		if e.Failed() {
			e.Logf("%s of %s was %v", d.attribute, key, describeValue(d.value))
		}
	}
	last := e.key + "/999"
	e.put(with(sound, e.keyItem(last)))
	records, bad := e.list(c, leasehold.ListOptions{Prefix: e.key + "/"})
	if len(records) != 1 || records[0].Key.Partition != last || len(bad) != len(want) {
		e.Errorf("listed %+v and %d damaged records of %d", records, len(bad), len(want))
	}
	for _, err := range bad {
		if want[err.Key.Partition] != err.Attribute || err.Problem == "" || err.Item == nil {
			e.Errorf("listed %v, want %s", err, want[err.Key.Partition])
		}
	}
}

// refuses checks that Get and TryAcquire fail and do not change the record. The errors must contain
// the key and the attribute.
func (e *env) refuses(c *leasehold.Client, key, attribute string) {
	e.Helper()
	before := e.itemOf(key)
	named := func(what string, err error) {
		e.Helper()
		var bad *leasehold.RecordError
		if !errors.As(err, &bad) || bad.Key != (leasehold.Key{Partition: key, Sort: e.sortValue}) || bad.Attribute != attribute || bad.Problem == "" {
			e.Errorf("%s of %v: %v, not a RecordError of %s", what, describe(before), err, attribute)
		}
	}
	_, err := c.Get(e.within(patience), key)
	named("get", err)
	lock, err := c.TryAcquire(e.within(patience), key)
	named("try", err)
	if lock != nil {
		e.release(lock)
	}
	if now := e.itemOf(key); !reflect.DeepEqual(now, before) {
		e.Errorf("%v was overwritten with %v", describe(before), describe(now))
	}
}

func (e *env) itemOf(key string) Item {
	e.Helper()
	out, err := e.db.GetItem(e.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(e.table), Key: e.keyItem(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		e.Fatal(err)
	}
	return out.Item
}

func damagedFree(e *env) {
	if e.peer.freed == nil {
		return // this layout has no records of free keys
	}
	c, _ := e.client()
	for _, d := range join(
		each("kind", text("of a later format"), decimal("2"), null),
		each("fencingToken", text("42"), decimal("-1"), huge, decimal("9007199254740991"), null),
	) {
		e.put(with(e.record(e.key, e.peer.freed("a-peer")), Item{d.attribute: d.value}))
		e.refuses(c, e.key, d.attribute)
	}
}

func mended(e *env) {
	if e.peer.freed == nil {
		return // this layout has no records of free keys
	}
	c, _ := e.client()
	for name := range e.peer.freed("a-peer") {
		if name == "isReleased" || name == "holder" {
			continue // without this attribute the record does not count as free
		}
		for _, v := range []types.AttributeValue{nil, aMap} {
			e.put(with(e.record(e.key, e.peer.freed("a-peer")), Item{name: v}))
			if r, err := c.Get(e.within(patience), e.key); err != nil || !r.Released {
				e.Errorf("%s %v: reads as %+v, %v", name, describeValue(v), r, err)
			}
			lock, err := c.TryAcquire(e.within(patience), e.key)
			if err != nil {
				e.Errorf("%s %v: %v", name, describeValue(v), err)
				continue
			}
			e.release(lock)
		}
	}
}
