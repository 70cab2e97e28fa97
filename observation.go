package leasehold

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Observation is a version and when this client first saw it. As JSON it can
// outlive the process: {"key","sortKey","version","leaseMs","since"}, and
// "boot" and "bootMs", the machine's clock since it booted and what that showed.
// The zero Observation says nothing: a HeldError has it where nothing was observed. It
// may be written, read and imported like any other.
type Observation struct {
	Key     Key
	Version string
	Lease   time.Duration
	Since   time.Time // by the wall clock, as it was set when the Observation was made

	boot      string        // names the clock; empty: unknown
	sinceBoot time.Duration // by that clock
}

// observation is v for other processes. The wall clock may have been set since v was
// observed: its time is that of the wall clock now, less the age of v by a clock that
// nobody sets.
func (c *Client) observation(key Key, v observed.Version) Observation {
	age := c.now().Mono - v.Since.Mono
	return Observation{
		Key: key, Version: v.ID, Lease: v.Lease, Since: c.wall().Round(0).Add(-age),
		boot: machine.ClockID(), sinceBoot: v.Since.Boot,
	}
}

// MarshalJSON writes the observation for another process.
func (o Observation) MarshalJSON() ([]byte, error) {
	return json.Marshal(observed.Sighting{
		Key: o.Key.Partition, SortKey: o.Key.Sort, Version: o.Version, LeaseMs: o.Lease.Milliseconds(),
		Since: formatTime(o.Since), Boot: o.boot, BootMs: observed.BootMs(o.sinceBoot),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Observation) UnmarshalJSON(b []byte) error {
	var in observed.Sighting
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("leasehold: observation: %w", err)
	}
	if in == (observed.Sighting{}) {
		*o = Observation{}
		return nil
	}
	since, err := parseTime(in.Since)
	if err != nil {
		return fmt.Errorf("leasehold: observation of %q: since: %w", in.Key, err)
	}
	lease, err := leaseOfMs(in.LeaseMs)
	if err != nil {
		return fmt.Errorf("leasehold: observation of %q: %w", in.Key, err)
	}
	*o = Observation{
		Key: Key{in.Key, in.SortKey}, Version: in.Version, Lease: lease, Since: since,
		boot: in.Boot, sinceBoot: in.ByBoot(),
	}
	return nil
}

// maxObservations is how many keys a client remembers that it does not watch.
const maxObservations = 10_000

// Observations returns what this client has observed: the newest 10,000 at most.
func (c *Client) Observations() []Observation {
	var all []Observation
	for key, v := range c.observer.Records.All() {
		all = append(all, c.observation(Key(key), v))
	}
	return all
}

// ImportObservations adds observations of another process, so that a holder which that
// process has watched need not be watched again. Nothing is sent.
//
// An observation made on this machine since it booted counts from when it was made, by
// the machine's clock; a container may have a clock of its own. Any other counts from
// its wall-clock time plus maxSkew, the most by which the two machines' clocks may
// differ: the one's when it told of the observation, the other's now. With a maxSkew of 0
// it counts from now. By a wall clock nobody is called dead elsewhere, except in layouts
// that store when a lease expires.
func (c *Client) ImportObservations(maxSkew time.Duration, obs ...Observation) error {
	if maxSkew < 0 {
		return fmt.Errorf("leasehold: import observations into table %s: maxSkew is %v: negative", c.cfg.Table, maxSkew)
	}
	for _, o := range obs {
		if o == (Observation{}) {
			continue
		}
		key, err := c.checkKey("import observation of", o.Key)
		if err != nil {
			return err
		}
		if c.caps.Expiry == layout.WallClock {
			continue // no observation makes a holder dead there
		}
		if o.Version == "" || o.Lease <= 0 {
			return c.errorf("import observation of", key, "version or lease is missing")
		}
		now := c.now()
		first := observed.Time{Boot: o.boot, ByBoot: o.sinceBoot, Wall: o.Since}
		age := first.Age(observed.Time{Boot: machine.ClockID(), ByBoot: now.Boot, Wall: c.wall().Round(0)}, maxSkew)
		c.observer.Records.Import(protocol.Key(key), observed.Version{ID: o.Version, Lease: o.Lease, Since: now.Add(-age)})
	}
	return nil
}

// observationOf returns the observation of a held record, or of the session's row if
// that is renewed in its place. A record that this client holds itself was observed
// now.
func (c *Client) observationOf(r Record) Observation {
	if r.mode != protocol.ModePlain {
		return Observation{} // each of its holders is observed by itself
	}
	key := r.Key
	if proto, ok := c.proto.(protocol.Sharing); ok && r.session != "" {
		key = Key(proto.SessionKey(r.session))
		if c.sharing != nil {
			if own := c.sharing.get(); own != nil && own.id == r.session {
				r = own.currentRecord()
			}
		}
	}
	v, ok := c.observer.Records.Of(protocol.Key(key))
	if !ok && r.Key == key && r.Version != "" {
		v, ok = liveness.VersionOf(r.protocol(), c.now()), true
	}
	if !ok {
		return Observation{}
	}
	return c.observation(key, v)
}
