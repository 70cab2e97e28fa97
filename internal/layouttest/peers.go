package layouttest

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// peer describes a client of another lock library: what it writes to a record, apart from the
// key, and how it reads a record. A layout is compatible with one such library.
type peer struct {
	// grant returns the item, without its key, that the peer writes for a grant.
	grant func(holder string, lease time.Duration, now time.Time) Item

	// Data and attributes that the peer's caller may store with a grant.
	carries Item

	// freed returns the item that the peer's release leaves behind. freed is nil if the release
	// deletes the item.
	freed func(holder string) Item

	// The function "until" returns the time from which the peer treats the holder in the given item
	// as dead. The parameter "written" is the time when the item was written or first read. The
	// result is the zero time if the peer cannot read the item.
	until func(item Item, written time.Time) time.Time

	// owner returns what Record.Owner must contain after leasehold has read the peer's record with
	// the given holder.
	owner func(holder string) string
}

func named(holder string) string { return holder }

// java describes a client of awslabs/amazon-dynamodb-lock-client.
var java = peer{
	grant: func(holder string, lease time.Duration, _ time.Time) Item {
		return javaLike(holder, strconv.FormatInt(lease.Milliseconds(), 10))
	},
	carries: Item{"data": binary("state"), "reason": text("month end"), "retries": decimal("3")},
	freed: func(holder string) Item {
		return with(javaLike(holder, "20000"), Item{"isReleased": text("1")})
	},
	until: func(item Item, written time.Time) time.Time {
		ms, err := strconv.ParseInt(textOf(item["leaseDuration"]), 10, 64)
		return after(written, time.Duration(min(ms, most.Milliseconds()))*time.Millisecond, err)
	},
	owner: named,
}

// dynamolock describes a client of cirello.io/dynamolock.
var dynamolock = peer{
	grant: func(holder string, lease time.Duration, _ time.Time) Item {
		return javaLike(holder, lease.String())
	},
	carries: java.carries,
	freed: func(holder string) Item {
		return with(javaLike(holder, "20s"), Item{"isReleased": text("1")})
	},
	until: func(item Item, written time.Time) time.Time {
		lease, err := time.ParseDuration(textOf(item["leaseDuration"]))
		return after(written, lease, err)
	},
	owner: named,
}

func javaLike(holder, lease string) Item {
	return Item{"ownerName": text(holder), "leaseDuration": text(lease), "recordVersionNumber": text(rand.Text())}
}

// python returns the description of a client of python_dynamodb_lock with the given TTL
// attribute.
func python(ttl string) peer {
	return peer{
		grant: func(holder string, lease time.Duration, now time.Time) Item {
			return Item{
				"owner_name": text(holder), "lease_duration": decimal(strconv.FormatFloat(lease.Seconds(), 'f', -1, 64)),
				"record_version_number": text(rand.Text()), ttl: number(now.Add(time.Hour).Unix()),
			}
		},
		carries: Item{"reason": text("month end"), "data": text("an attribute like others"), "retries": decimal("3")},
		until: func(item Item, written time.Time) time.Time {
			s, err := strconv.ParseInt(numberOf(item["lease_duration"]), 10, 64)
			return after(written, time.Duration(min(s, int64(most.Seconds())))*time.Second, err)
		},
		owner: named,
	}
}

// dlm describes a client of dynamo-dlm.
var dlm = peer{
	grant: func(_ string, lease time.Duration, now time.Time) Item {
		return Item{"release_code": text(rand.Text()), "expires": number(now.Add(lease).Unix())}
	},
	until: func(item Item, _ time.Time) time.Time {
		s, err := strconv.ParseInt(numberOf(item["expires"]), 10, 64)
		return after(time.Unix(s, 0), 0, err)
	},
	owner: func(string) string { return "" },
}

// mutex describes a client of dyndb-mutex.
var mutex = peer{
	grant: func(holder string, lease time.Duration, now time.Time) Item {
		const twoDays = 48 * time.Hour
		return Item{
			"holder": text(holder), "expire_ts": number(now.Add(lease).UnixMilli()),
			"ttl": number(now.Add(twoDays).UnixMilli()),
		}
	},
	freed: func(string) Item { return Item{"holder": text("__empty__"), "expire_ts": number(0)} },
	until: func(item Item, _ time.Time) time.Time {
		ms, err := strconv.ParseInt(numberOf(item["expire_ts"]), 10, 64)
		return after(time.UnixMilli(ms), 0, err)
	},
	owner: named,
}

// These tests limit a lease to this length before they calculate with it. A record of another
// library may have a longer lease, which may not fit in a time.Duration.
const most = 200 * 365 * 24 * time.Hour

func after(t time.Time, lease time.Duration, err error) time.Time {
	if err != nil {
		return time.Time{}
	}
	return t.Add(min(lease, most))
}

func number(n int64) types.AttributeValue { return decimal(fmt.Sprint(n)) }

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func numberOf(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}
