package simulation

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// fault is a kind of failure that a request, a process or the table meets in a run.
type fault string

// Faults that a request meets.
const (
	none          fault = ""
	inCrash       fault = "request of a process that has died"
	inPartition   fault = "request lost in a partition"
	inSuspend     fault = "request lost in a suspend"
	inOutage      fault = "server error in an outage"
	hotKey        fault = "throttled, one key"
	denied        fault = "access denied"
	deniedAfter   fault = "access denied, after the request was applied"
	requestLost   fault = "request lost"
	resetBefore   fault = "connection reset, request lost"
	replyLost     fault = "reply lost"
	resetAfter    fault = "connection reset, reply lost"
	requestLate   fault = "request late"
	replyLate     fault = "reply late"
	repeated      fault = "request repeated"
	repeatedMuch  fault = "request repeated minutes later"
	throttledOnce fault = "throttled"
	conflict      fault = "conflict with a transaction"
	serverError   fault = "server error"
	unavailable   fault = "server error, after the request was applied"
	expired       fault = "expired credentials"
	noCredentials fault = "no credentials to be had"
	hotTable      fault = "throttled, the table"
	inPause       fault = "request held up in a pause"
	expiredAWhile fault = "expired credentials, for a while"
	unknownAWhile fault = "unknown credentials, for a while"
	deniedAWhile  fault = "access denied, for a while"
)

// Faults that a process or the table meets.
const (
	crash     fault = "crash"
	partition fault = "partition begins"
	bootJumps fault = "suspend that nobody has noticed"
	wallSet   fault = "wall clock set"
	suspend   fault = "suspend"
	pause     fault = "pause"
	outage    fault = "outage begins"
	broke     fault = "lock broken by an operator"
	deleted   fault = "record deleted by hand"
	collected fault = "record deleted by TTL"
	spoiled   fault = "row damaged by hand"
	misled    fault = "wrong advice on a queue"
)

// injected is a fault that happened in a run. A fault has the same id in every run of its
// seed, whatever other faults happen in the run.
type injected struct {
	id    string
	fault fault
	to    string
	at    time.Duration
}

func (i injected) String() string { return fmt.Sprintf("%s  %v  %s: %s", i.id, i.at, i.fault, i.to) }

// happens reports whether the fault f should happen, and if so, records it. If world.only is set,
// only the faults in this list happen. If world.kinds is set, only faults of these kinds happen.
func (s *run) happens(f fault, to string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.happensTo(f, to)
}

// happensTo is like happens, but the caller must hold s.mu.
func (s *run) happensTo(f fault, to string) bool {
	h := fnv.New32a()
	_, _ = fmt.Fprintln(h, f, to)
	id := fmt.Sprintf("%08x", h.Sum32())
	if s.plan.only != nil && !slices.Contains(s.plan.only, id) || s.plan.kinds != nil && !slices.Contains(s.plan.kinds, f) {
		return false
	}
	s.faults = append(s.faults, injected{id, f, to, time.Since(s.began)})
	s.tally.Faults[f]++
	return true
}

// planned returns the ids of the faults that the environment variable LEASEHOLD_PLAN lists. It
// returns nil, which means all faults, if the variable is not set.
func planned() []string {
	if ids, ok := os.LookupEnv("LEASEHOLD_PLAN"); ok {
		return strings.FieldsFunc(ids, func(r rune) bool { return r == ',' })
	}
	return nil
}

// attributeMap is an item as the JSON of DynamoDB represents it.
type attributeMap map[string]map[string]any

func (m attributeMap) text(name string) string {
	s, _ := m[name]["S"].(string)
	return s
}

// waiters returns the version of each entry in the record's queue.
func (m attributeMap) waiters() (versions []string) {
	list, _ := m["waiters"]["L"].([]any)
	for _, v := range list {
		entry, _ := v.(map[string]any)
		if version := versionOf(entry); version != "" {
			versions = append(versions, version)
		}
	}
	return versions
}

// versionOf returns the version that an entry of a queue contains.
func versionOf(entry map[string]any) string {
	b, _ := entry["B"].(string)
	raw, err := base64.StdEncoding.DecodeString(b)
	if err != nil || len(raw) <= 16 {
		return ""
	}
	return protocol.VersionOfHex(hex.EncodeToString(raw[:16]))
}

func (m attributeMap) number(name string) int64 {
	s, _ := m[name]["N"].(string)
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// attributesOf returns the attributes of an item, with the types that the checker uses. It
// returns nil if item is nil.
func attributesOf(item map[string]types.AttributeValue) attributeMap {
	if item == nil {
		return nil
	}
	m := attributeMap{}
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			m[name] = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			m[name] = map[string]any{"N": v.Value}
		case *types.AttributeValueMemberB:
			m[name] = map[string]any{"B": base64.StdEncoding.EncodeToString(v.Value)}
		case *types.AttributeValueMemberL:
			list := make([]any, len(v.Value))
			for i, v := range v.Value {
				list[i] = attributesOf(map[string]types.AttributeValue{"is": v})["is"]
			}
			m[name] = map[string]any{"L": list}
		case *types.AttributeValueMemberM:
			inner := map[string]any{}
			for name, v := range attributesOf(v.Value) {
				inner[name] = v
			}
			m[name] = map[string]any{"M": inner}
		}
	}
	return m
}

// attributes returns the item that the reply to an update contains.
func attributes(res *http.Response) attributeMap {
	var out struct{ Attributes attributeMap }
	_ = json.Unmarshal(bodyOf(res), &out)
	return out.Attributes
}

// bodyOf reads the body of a reply, and replaces the body so that the caller can read it again.
func bodyOf(res *http.Response) []byte {
	body, _ := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

// edited decodes the JSON body of a request or a reply, lets the function change edit it, and
// encodes it again. A body that it cannot decode is returned unchanged.
func edited[T any](body []byte, change func(T)) []byte {
	var in T
	if json.Unmarshal(body, &in) != nil {
		return body
	}
	change(in)
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}

// request is one request that a process sends.
type request struct {
	lab.Call
	by      *process  // the sender
	at      time.Time // time when the request was sent
	keys    []string
	manner  manner
	givesUp bool // the request ends a grant that its sender holds
}

// manner is the kind of operation that a request performs. newRequest finds it from the
// body of the request.
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
		// This case matches hand-overs, and also requests that join a queue, create a session's
		// row, or grant a key that must have a record (IfExists). A more exact manner would change
		// the random faults, and so the runs of all seeds.
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

// operation returns a name for the background operation to which the request belongs, such as a
// renewal. It must not be used for a request that belongs to a call in progress.
func (r *request) operation() string {
	if r.manner == renews {
		return "renewal in the background"
	}
	if r.manner == other {
		return "request in the background"
	}
	return "in the background: what " + string(r.manner)
}
