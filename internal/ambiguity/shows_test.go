package ambiguity

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// keys returns a function that describes in words which clients hold the named
// keys.
func keys(names ...string) func(*trial) string {
	return func(x *trial) string {
		var all []string
		for _, name := range names {
			who := x.who(x.Item(name))
			if len(names) > 1 {
				who = name + " " + who
			}
			all = append(all, who)
		}
		return strings.Join(all, ", ")
	}
}

// who returns the holder that a record shows, in the words that the tables use
// for holders.
func (x *trial) who(item map[string]types.AttributeValue) string {
	owner := lab.Text(item, "ownerName")
	switch {
	case item == nil:
		return "no record"
	case lab.Text(item, "isReleased") != "":
		return "free"
	case strings.HasPrefix(owner, "test/"):
		return "ours"
	default:
		return "another's"
	}
}

// keyAndData describes in words the holder of the key "job" and the data of its
// record.
func keyAndData(x *trial) string {
	who := keys("job")(x)
	if d, ok := x.Item("job")["data"].(*types.AttributeValueMemberB); ok {
		return who + ", " + string(d.Value) + " data"
	}
	return who + ", no data"
}

// keyAndMark describes in words the holder of the key "job", and which client has done the
// work according to the mark in the record.
func keyAndMark(x *trial) string {
	item := x.Item("job")
	who := keys("job")(x)
	mark, _ := item["lastDone"].(*types.AttributeValueMemberM)
	switch {
	case mark == nil:
		return who + ", not done"
	case strings.HasPrefix(lab.Text(mark.Value, "by"), "test/"):
		return who + ", done by us"
	}
	return who + ", done by another"
}

// written returns a function that describes in words how often the item "a" was written, and
// which clients hold the named keys.
func written(names ...string) func(*trial) string {
	return func(x *trial) string {
		s := "not written"
		switch n := len(x.Log("a")); n {
		case 0:
		case 1:
			s = "written once"
		default:
			s = fmt.Sprintf("written %d times", n)
		}
		return s + "; " + keys(names...)(x)
	}
}
