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
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Most clients in this world declare MaxSkew, and their wall clocks are wrong by up to MaxSkew. The
// clocks of the other clients are wrong by up to ten seconds. Clocks are set again while leases
// run. The test checks all promises of docs/guarantees.md.
func TestSimulationOfClocksWithinMaxSkewFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(boundedClocks(1)))
}

// mostBound is the largest MaxSkew that a client declares in the worlds of boundedClocks.
const mostBound = 500 * time.Millisecond

// boundedClocks returns worlds in which clocks are wrong by up to the given multiple of their
// bound. The compiler must not inline boundedClocks. Otherwise its closures would have other names
// in each caller. The function chance uses these names, so a seed would have another history.
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

// Clients with bounded clocks wait in the queue of one key, and each holds the key for a moment. If
// a holder does not release the key, a waiter takes the key over once the lease end stored in the
// record has passed.
func TestSimulationOfQueuesWithMaxSkewFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(boundedClockQueues))
}

func boundedClockQueues(seed uint64) world {
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

// Clients with bounded clocks do work that must succeed only once (options Once and Every). If
// a holder dies during the work, a waiter takes the lock over and does the work again.
func TestSimulationOfOnceOnlyWorkWithMaxSkewFindsNoViolation(t *testing.T) {
	forSeeds(t, worldSeeds, likewise(boundedClockOnce))
}

func boundedClockOnce(seed uint64) world {
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
	lock := c.acquires(ctx, "acquire", keyNames[0])
	if lock == nil {
		return
	}
	c.rest(r, 300)
	c.frees(ctx, lock)
}

// trust returns how long the holder trusts the lease that r begins or renews, counted from the
// time at which r was sent.
func (r *request) trust(lease time.Duration) time.Duration {
	return lease - time.Duration(float64(lease)*float64(usualMargin)/float64(usualLease)) - r.by.wallBound
}

// notesEnds stores in c.ends the time until which the holder trusts its lock after r. It skips an
// item that has no lease end. It also skips a hand-over to the head of a queue, because the lease
// of such a hand-over begins at an unknown time. The caller must hold c.mu.
func (c *checker) notesEnds(r *request, item attributeMap) {
	if version := item.text("recordVersionNumber"); r.manner == handsOver && version != item.text("grantId") {
		return
	}
	if version := item.text("recordVersionNumber"); version != "" && item.endOf() == version && bytes.Contains(r.Body, []byte(version)) {
		ms, _ := strconv.ParseInt(item.text("leaseDuration"), 10, 64)
		c.ends[version] = r.supports(r.trust(time.Duration(ms) * time.Millisecond))
	}
}

// isOver reports whether r may take over a record of this version before the sender of r has
// observed the version for a whole lease. Both clients must have bounded clocks, and the holder's
// trust must have ended when r was sent. The caller must hold c.mu.
func (c *checker) isOver(r *request, version string) bool {
	until, ok := c.ends[version]
	return ok && r.by.wallBound > 0 && !r.at.Before(until)
}

// endOf returns the version to which the lease end in the attribute leaseEnds applies. It returns
// "" if the item has no lease end.
func (m attributeMap) endOf() string {
	b, _ := m["leaseEnds"]["B"].(string)
	raw, err := base64.StdEncoding.DecodeString(b)
	if err != nil || len(raw) != 24 {
		return ""
	}
	return protocol.VersionOfHex(hex.EncodeToString(raw[8:]))
}

func TestSimulationCatchesClocksWrongByMoreThanMaxSkew(t *testing.T) {
	found := []string{"invariant 1:", "invariant 7:", "invariant 11:"}
	areFound(t, 500,
		broken{"clocks that are wrong by more than MaxSkew", found, likewise(boundedClocks(8))},
		broken{"lease ends that count for every version", found, misread(withEndsOfEveryVersion, likewise(boundedClocks(1)))},
		broken{"a hand-over to the head that stores a lease end", found, tampered(withAnEndForTheHead, likewise(boundedClockQueues))},
	)
}

// withEndsOfEveryVersion makes each lease end in a reply apply to the record's current version.
// Clients then also use the lease end of an earlier version.
func withEndsOfEveryVersion(body []byte) []byte {
	if !bytes.Contains(body, []byte("leaseEnds")) {
		return body
	}
	return edited(body, claim)
}

// claim does the work of withEndsOfEveryVersion on a decoded reply, or on a part of it.
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

// withAnEndForTheHead changes each request that hands a key to the head of the key's queue:
// the request then also stores a lease end. The protocol forbids this.
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

// clocks are the three clocks of one process: mono, boot and wall. During a suspend mono almost
// stops, but timers still fire. When a timer fires before its time on the mono clock, the client
// sets the timer again. If mono stopped completely, this would go on forever.
type clocks struct {
	rate  float64
	began time.Time

	mu            sync.Mutex
	ahead         time.Duration // time by which jump has moved the boot clock ahead
	wall          time.Duration // time by which the wall clock is ahead of the world's time
	slept         time.Duration // total time for which earlier suspends have stopped the mono clock
	since, asleep time.Time     // beginning and end of the last suspend
}

func (k *clocks) read() (mono, boot time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	boot = time.Duration(k.rate*float64(now.Sub(k.began))) + k.ahead
	return time.Duration(k.rate * float64(now.Sub(k.began)-k.stoodStill(now))), boot
}

// stoodStill returns how much time the mono clock has lost in suspends up to the given time. The
// caller must hold k.mu.
func (k *clocks) stoodStill(now time.Time) time.Duration {
	if now.After(k.asleep) {
		now = k.asleep
	}
	return k.slept + now.Sub(k.since)*19/20
}

func (k *clocks) readWall() time.Time { return time.Now().Add(k.wallAhead()) }

func (k *clocks) wallAhead() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wall
}

func (k *clocks) setWall(ahead time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wall = ahead
}

// jump simulates a suspend that takes no time for the other processes. It moves the
// boot clock, which runs during suspends, ahead by d.
func (k *clocks) jump(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ahead += d
}

// leap moves the mono and boot clocks ahead by d in one step, which real clocks never do.
func (k *clocks) leap(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.began = k.began.Add(-d)
}

// suspend makes the mono clock almost stop for d.
func (k *clocks) suspend(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Before(k.asleep) {
		return
	}
	k.slept = k.stoodStill(now)
	k.since, k.asleep = now, now.Add(d)
}
