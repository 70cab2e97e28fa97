package simulation

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Most clients declare a bound for the error of their wall clock. These clocks are wrong by
// up to the whole bound, and are set while leases run. The wall clocks of the other clients
// may show any time. There are locks, shared leases and queues. All promises hold.
func TestSimulationOfBoundedClocks(t *testing.T) { forSeeds(t, worldSeeds, likewise(boundedClocks(1))) }

// mostBound is the largest clock bound that a client has in these worlds.
const mostBound = 500 * time.Millisecond

// boundedClocks returns worlds in which clocks are wrong by up to the given multiple of
// their bound. It is not inlined, because chance depends on the names of the functions on the
// stack: the closures of an inlined function are named after the function that calls it, so
// that a seed would have another history in each.
//
//go:noinline
func boundedClocks(times float64) func(seed uint64) world {
	return func(seed uint64) world {
		return world{
			shared: seed%5 == 0, forgets: seed%2 == 0,
			config: func(cfg *leasehold.Config, rng *rand.Rand) {
				if rng.IntN(4) > 0 {
					cfg.MaxSkew = time.Millisecond + upTo(rng, mostBound).Truncate(time.Millisecond)
				}
			},
			wall: func(c *process, rng *rand.Rand) time.Duration {
				wrong := time.Duration(times * float64(c.wallBound))
				if c.wallBound == 0 {
					wrong = 10 * time.Second
				}
				return upTo(rng, 2*wrong) - wrong
			},
			work: func(c *process, r *worker) {
				switch r.IntN(3) {
				case 0:
					c.setWall(r)
				default:
					c.section(r)
				}
			},
		}
	}
}

// Clients with bounded clocks hand one key to the next client in the queue, and each holds
// it for a moment. A client takes the key over if the previous holder's lease has ended.
func TestSimulationOfQueuesAndBoundedClocks(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(vouchedLines))
}

func vouchedLines(seed uint64) world {
	w := boundedClocks(1)(seed)
	w.shared = false
	w.config = func(cfg *leasehold.Config, rng *rand.Rand) {
		cfg.MaxSkew = time.Millisecond + upTo(rng, 100*time.Millisecond).Truncate(time.Millisecond)
	}
	w.work = func(c *process, r *worker) {
		for range 1 + r.IntN(8) {
			c.holdForAMoment(r)
		}
	}
	return w
}

// Clients with bounded clocks do work once. If a holder dies in the middle, a waiter takes
// over and does the work again.
func TestSimulationOfBoundedClocksAndWorkDoneOnce(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(vouchedOnce))
}

func vouchedOnce(seed uint64) world {
	w := boundedClocks(1)(seed)
	w.keeps = true
	usual := w.work
	w.work = func(c *process, r *worker) {
		if r.IntN(2) == 0 {
			usual(c, r)
		} else {
			c.doesOnce(r)
		}
	}
	return w
}

func (c *process) holdForAMoment(r *worker) {
	ctx, cancel := context.WithTimeout(r.ctx(), upTo(r, 12*time.Second))
	defer cancel()
	asked, over := c.operation(ctx, "acquire")
	lock, err := c.client.Acquire(asked, keyNames[0])
	over()
	if err != nil {
		return
	}
	c.believes(c, lock)
	c.rest(r, 300)
	if err := lock.Release(c.asks(ctx, "release")); err == nil {
		c.releasedForGood(lock)
	}
}

// trust returns how long a request that begins a lease is trusted.
func (r *request) trust(lease time.Duration) time.Duration {
	return lease - time.Duration(float64(lease)*float64(usualMargin)/float64(usualLease)) - r.by.wallBound
}

// notesEnds records until when the version that r has written is trusted. It skips a
// version if the item does not store when the version's lease ends. It also skips a
// hand-over to the head of a queue, because only the head knows when its lease ends. The
// caller must hold c.mu.
func (c *checker) notesEnds(r *request, item attributeMap) {
	if version := item.text("recordVersionNumber"); r.manner == handsOver && version != item.text("grantId") {
		return
	}
	if version := item.text("recordVersionNumber"); version != "" && item.endOf() == version && bytes.Contains(r.Body, []byte(version)) {
		ms, _ := strconv.ParseInt(item.text("leaseDuration"), 10, 64)
		c.ends[version] = r.supports(r.trust(time.Duration(ms) * time.Millisecond))
	}
}

// isOver reports whether r may take over a version that its process has not observed for a
// whole lease. It may if both clocks are bounded and the version is no longer trusted. The
// caller must hold c.mu.
func (c *checker) isOver(r *request, version string) bool {
	until, ok := c.ends[version]
	return ok && r.by.wallBound > 0 && !r.at.Before(until)
}

// endOf returns the version that the lease end of the item belongs to.
func (m attributeMap) endOf() string {
	b, _ := m["leaseEnds"]["B"].(string)
	raw, err := base64.StdEncoding.DecodeString(b)
	if err != nil || len(raw) != 24 {
		return ""
	}
	return protocol.VersionOfHex(hex.EncodeToString(raw[8:]))
}

func TestSimulationCatchesClocksWrongBeyondTheirBound(t *testing.T) {
	found := []string{"invariant 1:", "invariant 7:", "invariant 11:"}
	areFound(t, 500,
		broken{"clocks that are wrong by more than MaxSkew", found, likewise(boundedClocks(8))},
		broken{"ends that are believed of every version", found, misread(withEndsOfEveryVersion, likewise(boundedClocks(1)))},
		broken{"a hand-over to the head that says an end", found, tampered(withAnEndForTheHead, likewise(vouchedLines))},
	)
}

// withEndsOfEveryVersion makes clients read a lease end as if it belonged to the version
// that they see.
func withEndsOfEveryVersion(body []byte) []byte {
	if !bytes.Contains(body, []byte("leaseEnds")) {
		return body
	}
	return edited(body, claim)
}

// claim makes each lease end in a reply name the version of the same item.
func claim(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			claim(e)
		}
	case map[string]any:
		for _, e := range v {
			claim(e)
		}
		end, _ := v["leaseEnds"].(map[string]any)
		version, _ := v["recordVersionNumber"].(map[string]any)
		b, _ := end["B"].(string)
		s, _ := version["S"].(string)
		raw, badEnd := base64.StdEncoding.DecodeString(b)
		id, badVersion := hex.DecodeString(protocol.VersionHex(s))
		if badEnd == nil && badVersion == nil && len(raw) == 24 {
			end["B"] = base64.StdEncoding.EncodeToString(slices.Concat(raw[:8], id))
		}
	}
}

// withAnEndForTheHead adds a lease end to a hand-over to the head of a queue.
func withAnEndForTheHead(r *http.Request, body []byte) []byte {
	var in map[string]any
	call := lab.Call{Op: "UpdateItem", Body: body}
	if !asksFor(r, "UpdateItem") || !call.HandsOver() || !bytes.Contains(body, []byte(`"waiters"`)) || json.Unmarshal(body, &in) != nil {
		return body
	}
	names, _ := in["ExpressionAttributeNames"].(map[string]any)
	values, _ := in["ExpressionAttributeValues"].(map[string]any)
	update, _ := in["UpdateExpression"].(string)
	var version string
	for name, named := range names {
		if _, set, ok := strings.Cut(update, name+" = "); ok && named == "recordVersionNumber" {
			value, _ := values[strings.Split(strings.Fields(set)[0], ",")[0]].(map[string]any)
			version, _ = value["S"].(string)
		}
	}
	id, err := hex.DecodeString(protocol.VersionHex(version))
	if err != nil || len(id) != 16 {
		return body
	}
	names["#ends"] = "leaseEnds"
	end := binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(decide.HandOverLease(usualLease)).UnixMilli()))
	values[":ends"] = map[string]any{"B": base64.StdEncoding.EncodeToString(slices.Concat(end, id))}
	in["UpdateExpression"] = strings.Replace(update, "SET ", "SET #ends = :ends, ", 1)
	out, _ := json.Marshal(in)
	return out
}
