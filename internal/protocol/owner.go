package protocol

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/visible"
)

// clientIDLen is the length of crypto/rand.Text: 130 random bits in base 32.
const clientIDLen = 26

// LongestOwner is the maximum length of an owner's name in bytes, without the client id.
// Every record and every write of a record contain the name, and readers show it.
const LongestOwner = 255

// NewOwner returns an owner: the name, a slash and a new client id. The id
// distinguishes two clients of the same name, and helps to distinguish grants by
// leasehold from those of a peer that keeps leasehold's attributes.
func NewOwner(name string) string {
	return name + "/" + strings.ToLower(rand.Text())
}

// HasClientID reports whether an owner ends with text in the form of a client id. A peer's
// name may end in that form by coincidence.
func HasClientID(owner string) bool {
	id, ok := clientID(owner)
	return ok && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// ClientID returns the client id at the end of an owner, or "" if there is none.
func ClientID(owner string) string {
	id, _ := clientID(owner)
	return id
}

// ShortOwner returns an owner in a short form for people: the client id is cut to four
// characters.
func ShortOwner(owner string) string {
	if !HasClientID(owner) {
		return owner
	}
	return owner[:len(owner)-clientIDLen+4]
}

func clientID(owner string) (string, bool) {
	i := strings.LastIndexByte(owner, '/')
	if i < 0 || len(owner)-i-1 != clientIDLen {
		return "", false
	}
	return owner[i+1:], true
}

// NewVersion returns a UUID made of the current time and 74 random bits (RFC 9562, version
// 7). Every attempt to write uses a new one, so that no version is ever used twice. The
// time is for people, and shows whether a holder looks dead: see VersionTime.
func NewVersion() string { return NewVersionAt(time.Now()) }

// NewVersionAt does what NewVersion does, with t as the time.
func NewVersionAt(t time.Time) string {
	var b [16]byte
	rand.Read(b[6:]) // cannot fail since Go 1.24
	ms := t.UnixMilli()
	binary.BigEndian.PutUint32(b[:4], uint32(ms>>16))
	binary.BigEndian.PutUint16(b[4:6], uint16(ms))
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return VersionOfHex(hex.EncodeToString(b[:]))
}

// VersionTime returns when a version was made, by the clock of the client that made it. It
// returns the zero time for a version of a peer, or of an earlier leasehold, whose versions
// were entirely random.
func VersionTime(v string) time.Time {
	if !IsVersion(v) || v[14] != '7' || !strings.ContainsRune("89ab", rune(v[19])) {
		return time.Time{}
	}
	ms, _ := strconv.ParseInt(v[:8]+v[9:13], 16, 64) // cannot fail: these are 12 hexadecimal digits
	return time.UnixMilli(ms)
}

// IsVersion reports whether v has the form of a version from NewVersion.
func IsVersion(v string) bool {
	digits := strings.ReplaceAll(v, "-", "") // VersionOfHex puts the hyphens back in their places
	return len(digits) != len(v) && VersionOfHex(digits) == v
}

// VersionHex returns a version as 32 hexadecimal digits. Any other string is
// returned unchanged.
func VersionHex(v string) string {
	if !IsVersion(v) {
		return v
	}
	return strings.ReplaceAll(v, "-", "")
}

// VersionOfHex is the inverse of VersionHex. Any other string is returned
// unchanged.
func VersionOfHex(v string) string {
	if len(v) != 32 || strings.Trim(v, "0123456789abcdef") != "" {
		return v
	}
	return v[:8] + "-" + v[8:12] + "-" + v[12:16] + "-" + v[16:20] + "-" + v[20:]
}

// Key names a lock.
type Key struct{ Partition, Sort string }

// String returns the key in a form for people: the partition key, followed by the sort key
// in parentheses if there is one. A part that could be misread in a line of text is quoted.
// If the text has more than 120 characters, its middle is left out.
func (k Key) String() string {
	name := visible.Word(k.Partition)
	if k.Sort != "" {
		name += " (" + visible.Word(k.Sort) + ")"
	}
	return visible.Middle(name, 120)
}

// Compare compares two keys by the order in which several keys are acquired. That order is
// the same in every process.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Partition, o.Partition), strings.Compare(k.Sort, o.Sort))
}
