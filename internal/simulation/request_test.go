package simulation

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// request is one request that a process sends.
type request struct {
	lab.Call
	by      *process
	at      time.Time
	keys    []string
	manner  manner
	givesUp bool // the request ends a grant that its sender holds
}

// manner says which operation a request is. It is found from the body once, when the
// request is created.
type manner string

const (
	reads     manner = "reads"
	commits   manner = "commits"
	releases  manner = "releases"
	handsOver manner = "hands over"
	grants    manner = "grants"
	renews    manner = "renews"
	other     manner = "is about"
)

func newRequest(by *process, call lab.Call) *request {
	r := &request{Call: call, by: by, at: time.Now(), keys: call.Keys(), manner: other}
	switch {
	case call.Reads():
		r.manner = reads
	case call.Commits():
		r.manner, r.givesUp = commits, call.EndsLock()
	case call.Releases():
		r.manner, r.givesUp = releases, true
	case call.Grants() && !bytes.Contains(call.Body, []byte(" OR (")):
		// These are hand-overs. Requests for a session's row, and requests for a record
		// that must exist, also get the manner handsOver, although they are none. Faults
		// are drawn by the manner. So a correct manner for those requests would change the
		// runs of all seeds.
		r.manner, r.givesUp = handsOver, call.HandsOver()
	case call.Grants():
		r.manner = grants
	case call.Writes("UpdateItem") && !bytes.Contains(call.Body, []byte(`"stepDown"`)):
		r.manner = renews
	}
	return r
}

// asks describes a request by its operation and keys, without random parts. It adds the
// length of the body, which distinguishes two requests at the same instant.
func (r *request) asks() string {
	manner := r.manner
	if manner == renews {
		manner = other
	}
	return fmt.Sprintf("%s that %s %s, in %d bytes", r.Op, manner, strings.Join(r.keys, ", "), len(r.Body))
}

// operation returns a name for the operation to which the request belongs, if
// the client itself has started that operation.
func (r *request) operation() string {
	if r.manner == renews {
		return "renewal in the background"
	}
	if r.manner == other {
		return "request in the background"
	}
	return "in the background: what " + string(r.manner)
}
