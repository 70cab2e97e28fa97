package ambiguity

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// This file contains the writes that another client makes before a request of the operation
// arrives.

// stolen makes another client hold the key.
func stolen(key string) func(*trial, *lab.Request) {
	return func(x *trial, _ *lab.Request) {
		if item := x.Item(key); item == nil || lab.Text(item, "isReleased") != "" {
			_, _ = x.thief.TryAcquire(context.Background(), key, leasehold.WithoutRenewal())
			return
		}
		x.others++
		v := fmt.Sprint("another's ", x.others)
		x.Update(key, map[string]types.AttributeValue{
			"ownerName": lab.Str("thief/00000000000000000000000000000000"), "grantId": lab.Str(v), "recordVersionNumber": lab.Str(v),
			"session": nil, "leaseDuration": lab.Str("20000"),
		})
	}
}

// doneByAnother makes another client do the work, or repeat it. If an attempt of our client
// was applied, the other client first takes the key from it.
func doneByAnother(x *trial, r *lab.Request) {
	stolen("job")(x, r)
	x.others++
	x.Update("job", map[string]types.AttributeValue{
		"isReleased": lab.Str("1"), "fencingToken": lab.Num(fmt.Sprint(1<<51 + x.others)),
		"lastDone": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"once": lab.Str("it"), "by": lab.Str("thief/00000000000000000000000000000000"), "at": lab.Num("1"), "fencingToken": lab.Num(fmt.Sprint(1<<51 + x.others)),
		}},
	})
}

// renewed returns a function that gives the other client's record a new version. If the
// record is no longer that client's, the function steals the key instead, as stolen does.
func renewed(key string) func(*trial, *lab.Request) {
	return func(x *trial, r *lab.Request) {
		if !strings.HasPrefix(lab.Text(x.Item(key), "ownerName"), "other/") {
			stolen(key)(x, r)
			return
		}
		x.Update(key, map[string]types.AttributeValue{"recordVersionNumber": lab.Str(protocol.NewVersion())})
	}
}

// shut makes the condition of NoteIf fail by removing the attribute "open".
func shut(x *trial, _ *lab.Request) {
	remove := &types.Update{
		TableName: lab.Note("a", "").Update.TableName, Key: lab.WorkKey("a"),
		UpdateExpression: aws.String("REMOVE #o"), ExpressionAttributeNames: map[string]string{"#o": "open"},
	}
	if err := x.Transact(types.TransactWriteItem{Update: remove}); err != nil {
		x.T.Error(err)
	}
}

var sessionKey = regexp.MustCompile(`leasehold/session/[a-z2-7]{26}`)

// session returns the key of the session that a request names.
func session(r *lab.Request) string { return string(sessionKey.Find(r.Body)) }

func aboutSession(c lab.Call) bool {
	return !c.Reads() && slices.ContainsFunc(c.Keys(), func(k string) bool { return strings.HasPrefix(k, "leasehold/session/") })
}

// taken creates another client's row under the id that the request would give to a new
// session.
func taken(x *trial, r *lab.Request) {
	x.Put(map[string]types.AttributeValue{"key": lab.Str(session(r)), "kind": lab.Str("another's")})
}
