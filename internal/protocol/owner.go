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
// The length is limited because every record and every write of a record contain the name,
// and commands print it.
const LongestOwner = 255

// NewOwner returns an owner: the name, a slash and a new client id. The id distinguishes two
// clients with the same name. It also distinguishes leasehold's grants from grants by other
// libraries. Another library may keep leasehold's attributes in a record, but the owners that it
// writes usually have no client id.
func NewOwner(name string) string {
	return name + "/" + strings.ToLower(rand.Text())
}

// HasClientID reports whether an owner ends with text in the form of a client id. An owner
// from another library may end in that form by coincidence.
func HasClientID(owner string) bool {
	id := ClientID(owner)
	return id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// ClientID returns the client id at the end of an owner, or "" if there is none.
func ClientID(owner string) string {
	i := strings.LastIndexByte(owner, '/')
	if i < 0 || len(owner)-i-1 != clientIDLen {
		return ""
	}
	return owner[i+1:]
}

// ShortOwner returns an owner in a short form for people, with only the first four
// characters of the client id. It returns any other text unchanged.
func ShortOwner(owner string) string {
	if !HasClientID(owner) {
		return owner
	}
	return owner[:len(owner)-clientIDLen+4]
}

// NewVersion returns a UUID made of the current time and 74 random bits (RFC 9562, version 7).
// Every attempt to write uses a new UUID, so no version is used twice. Commands print the time in
// the UUID, and clients use it to find out whether a holder appears dead.
func NewVersion() string { return NewVersionAt(time.Now()) }

// NewVersionAt returns a version like NewVersion, but with the time t instead of the
// current time.
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

// VersionTime returns the time in the version v, by the clock of the client that created it. It
// returns the zero time for versions of other libraries, and of early releases of leasehold, which
// contain only random bits.
func VersionTime(v string) time.Time {
	if !IsVersion(v) || v[14] != '7' || !strings.ContainsRune("89ab", rune(v[19])) {
		return time.Time{}
	}
	ms, _ := strconv.ParseInt(v[:8]+v[9:13], 16, 64) // cannot fail: these are 12 hexadecimal digits
	return time.UnixMilli(ms)
}

const hexDigits = "0123456789abcdef"

// IsVersion reports whether v has the form of a version from NewVersion.
func IsVersion(v string) bool {
	return len(v) == 36 && v[8] == '-' && v[13] == '-' && v[18] == '-' && v[23] == '-' &&
		strings.Count(v, "-") == 4 && strings.Trim(v, "-"+hexDigits) == ""
}

// VersionHex returns a version as 32 hexadecimal digits, without hyphens. It returns any
// other string unchanged.
func VersionHex(v string) string {
	if !IsVersion(v) {
		return v
	}
	return strings.ReplaceAll(v, "-", "")
}

// VersionOfHex is the inverse of VersionHex: it converts 32 hexadecimal digits to a version. It
// returns any other string unchanged.
func VersionOfHex(v string) string {
	if len(v) != 32 || strings.Trim(v, hexDigits) != "" {
		return v
	}
	return v[:8] + "-" + v[8:12] + "-" + v[12:16] + "-" + v[16:20] + "-" + v[20:]
}

// Key is the name of a lock: the values of the partition key and the sort key of its
// record.
type Key struct{ Partition, Sort string }

// String returns the key for people: the partition key, followed by the sort key (if any) in
// parentheses. It quotes a part that could be misread in a line of text. It omits the middle of a
// text over 120 characters.
func (k Key) String() string {
	name := visible.Word(k.Partition)
	if k.Sort != "" {
		name += " (" + visible.Word(k.Sort) + ")"
	}
	return visible.Middle(name, 120)
}

// Compare compares k and o by the partition key, and then by the sort key. It returns -1, 0 or 1,
// as strings.Compare does. A process that acquires several keys acquires them in this order.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Partition, o.Partition), strings.Compare(k.Sort, o.Sort))
}
