//go:build linux

package peers

import (
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Settings is the content of the first request to a driver. The driver makes a client of its
// lock library with these settings. If the library lacks one of the settings, the driver
// returns an error that matches ErrUnsupported.
type Settings struct {
	Table        string `json:"table"`
	PartitionKey string `json:"partitionKey,omitempty"` // attribute name; empty for the library's default
	SortKey      string `json:"sortKey,omitempty"`      // attribute name; empty for the library's default
	TTL          string `json:"ttl,omitempty"`          // attribute name; empty for the library's default
	Owner        string `json:"owner,omitempty"`        // empty for the library's default

	// The next two fields are only for leasehold.
	Shared      bool `json:"shared,omitempty"`      // true to let all locks of a client share one lease
	Connections int  `json:"connections,omitempty"` // maximum number of idle connections; 0 for the SDK's default

	// The following durations are sent in whole milliseconds.
	Lease     time.Duration `json:"-"`
	Heartbeat time.Duration `json:"-"` // interval of background renewals; 0 turns them off
	Poll      time.Duration `json:"-"` // pause of a waiter between two polls (in leasehold, the longest pause); 0 for the library's default
	Safe      time.Duration `json:"-"` // for python-dynamodb-lock: time since the last successful renewal after which the library reports a lock as in danger
	Expiry    time.Duration `json:"-"` // for python-dynamodb-lock: time after which DynamoDB's TTL may delete the record
}

// Request is one request to a driver. It is sent as one line of JSON.
type Request struct {
	ID int64  `json:"id"` // identifies the request in the reply; set by Send
	Do string `json:"do"` // operation: "acquire", "heartbeat", "release", "get", "list", "held" or "with"

	// Client is the number that Open returned for the client; 0 for the first client.
	Client int64 `json:"client,omitempty"`

	// Key and SortValue name the lock in the requests "acquire" and "get". In a request "list",
	// Key selects one partition.
	Key       string `json:"key,omitempty"`
	SortValue string `json:"sortValue,omitempty"`

	// Lock identifies the lock in the requests "heartbeat", "release" and "held". It is the ID of
	// the earlier request "acquire" that acquired the lock.
	Lock int64 `json:"lock,omitempty"`

	// The following fields are for the request "acquire".
	Wait          time.Duration `json:"-"`               // longest wait for the lock, in whole milliseconds; 0 to fail immediately if the lock is held
	Owner         string        `json:"owner,omitempty"` // owner for this lock; empty to use Settings.Owner
	Slots         int           `json:"slots,omitempty"` // number of clients that may hold the key at the same time; 0 for an ordinary lock
	KeepData      bool          `json:"keepData,omitempty"`
	KeepOnRelease bool          `json:"keepOnRelease,omitempty"`
	Update        bool          `json:"update,omitempty"` // whether the library updates the record instead of replacing it
	IfExists      bool          `json:"ifExists,omitempty"`
	Consistently  bool          `json:"consistently,omitempty"` // whether the library acquires a released lock only if its record has not changed since the library read it
	Reentrant     bool          `json:"reentrant,omitempty"`
	Again         int64         `json:"again,omitempty"` // ID of an earlier acquire request, whose lock object the driver uses again; 0 for a new object

	// The following fields are for the requests "acquire", "heartbeat" and "release".
	Data       []byte     `json:"data,omitzero"` // nil if the request has no data
	Attributes Attributes `json:"attributes,omitzero"`

	// The following fields are for the request "heartbeat".
	DeleteData bool          `json:"deleteData,omitempty"`
	Lease      time.Duration `json:"-"` // new lease in whole milliseconds; 0 to keep the current lease

	// The following fields are for the request "release". Keep says whether the record remains in
	// the table after the release. If Keep is nil, the field KeepOnRelease of the request "acquire"
	// decides. For dyndb-mutex, Lock may be 0: Key and Owner then name the lock.
	Keep       *bool `json:"keep,omitempty"`
	BestEffort bool  `json:"bestEffort,omitempty"`
}

// Reply is a driver's answer to one request.
type Reply struct {
	ID      int64    `json:"id"`
	Record  *Record  `json:"record,omitempty"`  // for the request "acquire": the granted record; for "get": the record, or nil if none exists
	Records []Record `json:"records,omitempty"` // for the request "list": the records
	Held    bool     `json:"held,omitempty"`    // for the request "held": whether the library reports the lock as held
	Raised  bool     `json:"raised,omitempty"`  // for the request "with": whether an exception raised inside Python's with statement reached the code around the statement
	Error   *Error   `json:"error,omitempty"`

	// At is the time at which this process received the reply.
	At time.Time `json:"-"`
}

// Record is a lock record as a lock library returns it. Fields that the library does not
// return are zero.
type Record struct {
	Key        string        `json:"key,omitempty"`
	SortValue  string        `json:"sortValue,omitempty"`
	Owner      string        `json:"owner,omitempty"`
	Version    string        `json:"version,omitempty"`
	Lease      time.Duration `json:"-"`
	Expires    time.Time     `json:"-"`
	Released   bool          `json:"released,omitempty"`
	Slot       int           `json:"slot,omitempty"`
	Token      int64         `json:"token,omitempty"` // fencing token; only leasehold has fencing tokens
	Data       []byte        `json:"data,omitzero"`
	Attributes Attributes    `json:"attributes,omitzero"`
}

// line returns a value whose JSON encoding is the request "open" with these settings, on one line.
func (s Settings) line(id int64) any {
	type plain Settings
	return struct {
		ID int64  `json:"id"`
		Do string `json:"do"`
		plain
		LeaseMs     int64 `json:"leaseMs"`
		HeartbeatMs int64 `json:"heartbeatMs,omitempty"`
		PollMs      int64 `json:"pollMs,omitempty"`
		SafeMs      int64 `json:"safeMs,omitempty"`
		ExpiryMs    int64 `json:"expiryMs,omitempty"`
	}{
		id, "open", plain(s), s.Lease.Milliseconds(), s.Heartbeat.Milliseconds(),
		s.Poll.Milliseconds(), s.Safe.Milliseconds(), s.Expiry.Milliseconds(),
	}
}

func (s *Settings) read(line []byte) error {
	type plain Settings
	var in struct {
		*plain
		LeaseMs, HeartbeatMs, PollMs, SafeMs, ExpiryMs int64
	}
	in.plain = (*plain)(s)
	if err := json.Unmarshal(line, &in); err != nil {
		return err
	}
	s.Lease, s.Heartbeat, s.Poll = milliseconds(in.LeaseMs), milliseconds(in.HeartbeatMs), milliseconds(in.PollMs)
	s.Safe, s.Expiry = milliseconds(in.SafeMs), milliseconds(in.ExpiryMs)
	return nil
}

func (r Request) line(id int64) any {
	type plain Request
	r.ID = id
	return struct {
		plain
		WaitMs  int64 `json:"waitMs,omitempty"`
		LeaseMs int64 `json:"leaseMs,omitempty"`
	}{plain(r), r.Wait.Milliseconds(), r.Lease.Milliseconds()}
}

func (r *Request) read(line []byte) error {
	type plain Request
	var in struct {
		*plain
		WaitMs, LeaseMs int64
	}
	in.plain = (*plain)(r)
	if err := json.Unmarshal(line, &in); err != nil {
		return err
	}
	r.Wait, r.Lease = milliseconds(in.WaitMs), milliseconds(in.LeaseMs)
	return nil
}

// MarshalJSON encodes the record in the format of the drivers.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	out := struct {
		plain
		LeaseMs   int64 `json:"leaseMs,omitempty"`
		ExpiresMs int64 `json:"expiresMs,omitempty"`
	}{plain(r), r.Lease.Milliseconds(), 0}
	if !r.Expires.IsZero() {
		out.ExpiresMs = r.Expires.UnixMilli()
	}
	return json.Marshal(out)
}

// UnmarshalJSON decodes a record that a driver wrote.
func (r *Record) UnmarshalJSON(b []byte) error {
	type plain Record
	var in struct {
		*plain
		LeaseMs, ExpiresMs int64
	}
	in.plain = (*plain)(r)
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	r.Lease = milliseconds(in.LeaseMs)
	if in.ExpiresMs != 0 {
		r.Expires = time.UnixMilli(in.ExpiresMs)
	}
	return nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Attributes is a set of attributes that is sent as DynamoDB JSON.
type Attributes map[string]types.AttributeValue

// MarshalJSON writes DynamoDB JSON.
func (a Attributes) MarshalJSON() ([]byte, error) { return attributevalue.MarshalMapJSON(a) }

// UnmarshalJSON reads DynamoDB JSON.
func (a *Attributes) UnmarshalJSON(b []byte) error {
	m, err := attributevalue.UnmarshalMapJSON(b)
	*a = m
	return err
}
