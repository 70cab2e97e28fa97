package requests

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// Trouble says that requests fail, or are not answered. If it lasts no time, they do not.
type Trouble struct {
	server    Server
	lasts     time.Duration
	why       string // empty: requests have not failed yet
	throttled bool
	unsent    bool // no request was sent yet
	answers   int  // how many requests were answered before
}

// Kinds of news.
const (
	Throttled = "throttled" // every request is throttled
	NoAnswer  = "no_answer" // no request is answered, or none can be sent
	Answered  = "answered"  // that is over
)

func (t Trouble) kind() string {
	if t.throttled {
		return Throttled
	}
	return NoAnswer
}

// what says what happens.
func (t Trouble) what() string {
	switch {
	case t.throttled:
		return t.server.name() + " has throttled every request for " + wording.Age(t.lasts)
	case t.unsent && !t.server.IsFile:
		return "no credentials for " + wording.Age(t.lasts)
	}
	if _, isDisk := failure.DiskIn(t.why); isDisk {
		return t.server.name() + " could not be written for " + wording.Age(t.lasts)
	}
	return "no answer from " + t.server.name() + " for " + wording.Age(t.lasts)
}

// reason says why, as far as known.
func (t Trouble) reason() string {
	if t.unsent && !t.server.IsFile {
		return "no request was sent yet"
	}
	return cmp.Or(t.why, "no reply from "+t.server.Location)
}

// advice says what to do.
func (t Trouble) advice() string {
	if d, is := failure.DiskIn(t.why); is {
		return d.String()
	}
	switch {
	case t.throttled:
		return decide.RaiseCapacity
	case t.server.IsFile:
		return "find the process that keeps the file locked: leasehold doctor or fuser(1) names it"
	case t.unsent:
		return "check what provides them: AWS_PROFILE, single sign-on, credential_process, the instance's metadata service"
	}
	return decide.CheckConnection
}

// Line is all of it, in one line.
func (t Trouble) Line() string {
	if _, isDisk := failure.DiskIn(t.why); t.throttled || isDisk {
		return fmt.Sprintf("%s: still trying: %s: %s", t.what(), t.advice(), t.reason())
	}
	return fmt.Sprintf("%s: still trying: %s: %s", t.what(), t.reason(), t.advice())
}
