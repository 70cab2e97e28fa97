package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/leasehold-go/leasehold/layout"
)

// clockTolerance is how much the clocks may differ where only times that people
// read depend on it.
const clockTolerance = 30 * time.Second

func (d *doctor) checkThrottling() {
	saw := d.probe.seen()
	f := finding{
		Check: "throttling", State: fine, What: fmt.Sprintf("none in %d requests", saw.answered),
		Values: map[string]any{"throttled": saw.throttled, "requests": saw.answered},
	}
	if saw.throttled > 0 {
		f.State, f.What = warning, fmt.Sprintf("%d of %d requests were throttled", saw.throttled, saw.answered)
		f.Do = "raise the table's capacity, or make it pay per request"
	}
	d.say(f)
}

func (d *doctor) checkConnections() {
	saw := d.probe.seen()
	f := finding{
		Check: "connections", State: fine,
		What:   fmt.Sprintf("%d new, %d reused, to %s, %s", saw.opened, saw.reused, saw.server, tlsName(saw.tls)),
		Values: map[string]any{"new": saw.opened, "reused": saw.reused, "server": saw.server, "tls": tlsName(saw.tls)},
	}
	var do []string
	if saw.opened > saw.reused {
		do = append(do, "something closes connections after use, and each renewal pays for a new one: look for a proxy that does not keep them alive")
	}
	if endpoint := aws.ToString(d.store.db.Options().BaseEndpoint); saw.tls == 0 && strings.HasPrefix(endpoint, "http://") && !isLoopback(endpoint) {
		do = append(do, "others on the network can read and change requests: use an https:// endpoint")
	}
	if len(do) > 0 {
		f.State, f.Do = warning, strings.Join(do, "; ")
	}
	d.say(f)
}

func (d *doctor) checkClock() {
	clock := d.probe.seen().clock
	if !clock.known {
		d.say(finding{Check: "clock", State: notKnown, What: "the server does not say its time"})
		return
	}
	f := finding{
		Check: "clock", State: fine, What: clockText(clock),
		Values: map[string]any{"serverAheadMinMs": clock.from.Milliseconds(), "serverAheadMaxMs": clock.to.Milliseconds()},
	}
	const set = "synchronise this machine's clock (chrony, or the time service of its cloud)"
	switch skew := d.proto.Skew(); {
	case d.store.layout.Capabilities().Expiry == layout.WallClock && clock.least() > skew/2:
		f.State, f.Do = warning, set
		if clock.least() > skew {
			f.State = fatal
		}
		f.What += fmt.Sprintf("; layout %s compares times, and is safe only while no two clocks differ by more than %s", d.store.layout.Name(), shortDuration(skew))
	case clock.least() > clockTolerance:
		f.State, f.Do = warning, set
		f.What += "; ages and times are wrong, tokens may fall once a record was deleted, and AWS refuses requests from five minutes on"
	}
	d.say(f)
}

func clockText(c clockRange) string {
	middle, off := (c.from+c.to)/2, (c.to-c.from)/2
	switch {
	case c.least() == 0:
		return "within " + shortDuration(c.most().Round(time.Millisecond)) + " of the server's"
	case middle > 0:
		return fmt.Sprintf("%s behind the server's (give or take %s)", shortDuration(middle.Round(time.Millisecond)), shortDuration(off.Round(time.Millisecond)))
	}
	return fmt.Sprintf("%s ahead of the server's (give or take %s)", shortDuration((-middle).Round(time.Millisecond)), shortDuration(off.Round(time.Millisecond)))
}
