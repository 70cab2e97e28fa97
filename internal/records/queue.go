package records

import (
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attrWaiters is a record's queue. Its binary entries are short, so that many fit in a kilobyte. An
// entry is a waiter's grant id (16 bytes), client id (17) and name. A client id has 26 letters: the
// first 24 are base 32 and become 15 bytes, and the last two are stored unchanged.
const attrWaiters = "waiters"

// attrHanded marks a grant that the previous holder has written, for a waiter of another client.
// The waiter's first own write removes the mark. If the waiter dies before that, the client that
// takes the key over may suspend the queue.
//
// The end of the suspension is attrNoQueueUntil, in epoch milliseconds by that client's clock.
// Until then, no client should join the queue or hand the key over. Wrong values of either
// attribute only delay waiters.
const (
	attrHanded       = "handed"
	attrNoQueueUntil = "noQueueUntil"
)

var handed = text("1")

const grantBytes, idPacked, idBytes = 16, 24, 17

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func entryOf(w protocol.Waiter) types.AttributeValue {
	grant, badGrant := hex.DecodeString(strings.ReplaceAll(w.Grant, "-", ""))
	id := protocol.ClientID(w.Owner)
	packed, badID := idEncoding.DecodeString(id[:min(idPacked, len(id))])
	if badGrant != nil || badID != nil || len(grant) != grantBytes || id == "" {
		panic("records: " + w.Grant + " or " + w.Owner + " is not of a client of leasehold")
	}
	return &types.AttributeValueMemberB{Value: slices.Concat(
		grant, packed, []byte(id[idPacked:]), []byte(strings.TrimSuffix(w.Owner, "/"+id)),
	)}
}

// waiterOf returns the waiter that entry v describes. It returns false if v is not a queue
// entry.
func waiterOf(v types.AttributeValue) (protocol.Waiter, bool) {
	b, _ := v.(*types.AttributeValueMemberB)
	if b == nil || len(b.Value) < grantBytes+idBytes {
		return protocol.Waiter{}, false
	}
	grant, id, name := b.Value[:grantBytes], b.Value[grantBytes:grantBytes+idBytes], b.Value[grantBytes+idBytes:]
	packed := len(id) - 2
	w := protocol.Waiter{
		Grant: protocol.VersionOfHex(hex.EncodeToString(grant)),
		Owner: string(name) + "/" + idEncoding.EncodeToString(id[:packed]) + string(id[packed:]),
	}
	return w, protocol.HasClientID(w.Owner)
}

// waitersOf returns the queue of an item. It returns nil if the item has no queue, or if
// the queue is damaged. A damaged queue is not an error, as waiters can also acquire the
// key without a queue.
func waitersOf(item protocol.Item) []protocol.Waiter {
	list, _ := item[attrWaiters].(*types.AttributeValueMemberL)
	if list == nil {
		return nil
	}
	line := make([]protocol.Waiter, 0, len(list.Value))
	for _, v := range list.Value {
		w, ok := waiterOf(v)
		if !ok {
			return nil
		}
		line = append(line, w)
	}
	return line
}

// pathOf returns the path of the queue entry with the given index, for an expression in w.
func pathOf(w *protocol.Write, index int) string {
	return w.Name(attrWaiters) + "[" + strconv.Itoa(index) + "]"
}

func entryIsAt(w *protocol.Write, p protocol.QueueEntry) string {
	return pathOf(w, p.Index) + " = " + w.Value(entryOf(p.Of))
}

// Join returns the write that appends an entry for the given waiter to the queue, on three
// conditions: the record of key k shows a holder, the queue is not full, and the queue does not
// contain the entry.
func (p native) Join(k protocol.Key, of protocol.Waiter) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(k))
	line, entry := w.Name(attrWaiters), entryOf(of)
	none, one := w.Value(&types.AttributeValueMemberL{}), w.Value(&types.AttributeValueMemberL{Value: []types.AttributeValue{entry}})
	w.SetTo(attrWaiters, fmt.Sprintf("list_append(if_not_exists(%s, %s), %s)", line, none, one))
	w.Where(p.record.unreleased(w) + strings.Join([]string{
		"attribute_exists(" + w.Name(attrVersion) + ")",
		"attribute_not_exists(" + w.Name(attrKind) + ")",
		fmt.Sprintf("(attribute_not_exists(%[1]s) OR attribute_type(%[1]s, %[2]s) AND size(%[1]s) < %[3]s AND NOT contains(%[1]s, %[4]s))",
			line, w.Text("L"), w.Value(number(protocol.MostWaiters)), w.Value(entry)),
	}, " AND "))
	return w
}

// Leave returns the write that removes the entry of the waiter at.Of from the queue, on the
// condition that this entry has the index at.Index.
func (p native) Leave(k protocol.Key, at protocol.QueueEntry) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(k))
	w.RemovePath(pathOf(w, at.Index))
	w.Where(entryIsAt(w, at))
	return w
}

// HandToHead returns the write that hands the key from the holder of h to the queue's head. It
// removes the head's entry and marks the hand-over. It stores no lease end, because the head's
// lease begins at the head's last read of the record before the hand-over. This read may be later
// than g.Now, so an end calculated from g.Now could be too early.
func (p native) HandToHead(h protocol.Hold, g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	byAnother := p.record
	byAnother.skew, byAnother.handsOver = 0, false
	byAnother.setGrant(w, g)
	w.Set(attrHanded, handed)
	head := protocol.QueueEntry{Of: protocol.Waiter{Grant: g.ID, Owner: g.Owner}}
	w.RemovePath(pathOf(w, 0))
	w.Where(p.held(w, h) + " AND " + tokenInRange(w) + " AND " + entryIsAt(w, head))
	return w
}

// Takeovers and breaks erase the queue, because the waiters may be dead, like the holder: live
// waiters join again. A release that marks work as done erases the queue too, so that waiters for
// the same work need not remove their entries one by one.

// Grant returns the same write as lock.Grant, with two additions. A takeover erases the queue, and
// may suspend it. The grant of a queued waiter removes the waiter's entry. If the record was
// deleted, DynamoDB rejects a grant that removes an entry: the waiter then sends a grant that
// removes none.
func (p native) Grant(g protocol.Grant) *protocol.Write {
	w := p.lock.Grant(g)
	switch {
	case g.Dead != nil:
		w.Remove(attrWaiters)
		if !g.NoQueueUntil.IsZero() {
			w.Set(attrNoQueueUntil, number(g.NoQueueUntil.UnixMilli()))
		}
	case g.Entry != nil:
		w.RemovePath(pathOf(w, g.Entry.Index))
		w.AndWhere(entryIsAt(w, *g.Entry))
	}
	return w
}

// Break returns the same write as lock.Break, except that the write also erases the queue.
func (p native) Break(r protocol.Record, b protocol.Break) *protocol.Write {
	w := p.lock.Break(r, b)
	w.Remove(attrWaiters)
	return w
}

// Release returns the same write as lock.Release, except that a release that marks work as
// done also erases the queue.
func (p native) Release(h protocol.Hold, r protocol.Release) *protocol.Write {
	w := p.lock.Release(h, r)
	if r.Done != nil {
		w.Remove(attrWaiters)
	}
	return w
}
