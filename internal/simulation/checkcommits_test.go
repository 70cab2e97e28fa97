package simulation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// commitCall is one call of Commit or CommitAndRelease in a run. Each call appends a
// value that no other call appends.
type commitCall struct {
	key, value, grant string
	token             int64
	beside            []*leasehold.Lock // other locks whose guards are in the same transaction
	done              bool
	err               error
}

// begin records that the process calls Commit under lock. It returns the record of the
// call and the value that the call appends.
func (c *process) begin(lock *leasehold.Lock) (*commitCall, string) {
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	call := &commitCall{key: lock.Key().Partition, grant: lock.Record().Grant, token: lock.Token()}
	c.begun++
	call.value = fmt.Sprintf("%d of process %d", c.begun, c.id)
	c.commits[call.value] = call
	return call, call.value
}

func (c *process) end(call *commitCall, err error) {
	c.checker.mu.Lock()
	defer c.checker.mu.Unlock()
	call.done, call.err = true, err
}

// commit appends a value to the log of the lock's key, in a transaction that the lock
// guards. The append itself has one of three kinds of condition: none; that the log
// has not changed since it was read; or a condition that no longer holds. The call
// waits for at most patience.
func (c *process) commit(r *worker, lock *leasehold.Lock, patience time.Duration) {
	ctx, cancel := context.WithTimeout(r.ctx(), time.Duration(r.Int64N(int64(patience))))
	defer cancel()
	// A renewal may have waited for the commit. The pause ensures that this renewal comes
	// before the worker's next call in every run of a seed.
	defer c.rest(r, 5)
	call, value := c.begin(lock)
	write := lab.Note(call.key, value)
	if how := r.IntN(4); how < 2 {
		items, err := lock.Read(c.asks(ctx, "read"), []types.TransactGetItem{lab.Get(call.key)})
		if err != nil {
			c.end(call, err)
			return
		}
		length := len(lab.Log(items[0]))
		if how == 1 {
			length--
		}
		if length > 0 {
			write.Update.ConditionExpression = aws.String("size(#l) = :n")
			write.Update.ExpressionAttributeValues[":n"] = lab.Num(strconv.Itoa(length))
		}
	}
	c.end(call, lock.Commit(c.asks(ctx, "commit"), []types.TransactWriteItem{write}))
}

// committed checks what a transaction has changed in the tables. The caller
// must hold c.mu.
func (c *checker) committed(r *request) {
	for _, item := range lab.TransactItems(r.Body) {
		if item.Update != nil && item.Update.TableName == "work" {
			c.appended(r, item.Update.Key["id"].S)
		}
	}
	for _, item := range lab.TransactItems(r.Body) {
		for _, w := range []*lab.TransactWrite{item.Update, item.Delete} {
			if w != nil && w.TableName == "locks" {
				c.ended(r, w.Key["key"].S)
			}
		}
	}
}

// appended checks a value that was appended to a log: the record of the key's
// lock must have allowed the append.
func (c *checker) appended(r *request, key string) {
	was, now := c.logs[key], c.table.Log(key)
	c.logs[key] = now
	if len(now) == len(was) {
		// Nothing was appended: DynamoDB has recognized the repeated transaction by its
		// idempotency token.
		return
	}
	value := now[len(now)-1]
	c.applies(r, key, "noted "+value)
	call := c.commits[value]
	switch {
	case !c.stands(key, call.grant, call.token):
		c.note("4: %s, of grant %s with token %d, landed when %s showed %+v", value, call.grant, call.token, key, c.records[key])
	case !c.allStand(call.beside):
		c.note("4: %s, of grant %s, landed when a lock beside %s did not stand", value, call.grant, key)
	case call.done && call.err != nil && !errors.Is(call.err, leasehold.ErrUnknownOutcome) && !c.deleted[call.grant]:
		c.note("8: %s landed after its commit had failed: %v", value, call.err)
	}
}

func (c *checker) allStand(locks []*leasehold.Lock) bool {
	for _, l := range locks {
		if !c.stands(l.Key().Partition, l.Record().Grant, l.Token()) {
			return false
		}
	}
	return true
}

// stands reports whether a grant is current, according to the record in the
// table.
func (c *checker) stands(key, grant string, token int64) bool {
	s := c.records[key]
	return s != nil && !s.released && !c.isDead(s.session) && s.grant == grant && s.token == token
}

// ended records the state of a key's record after a transaction has released
// the key's lock.
func (c *checker) ended(r *request, key string) {
	item := c.table.Item(key)
	if item == nil {
		c.applies(r, key, "deleted")
		delete(c.records, key)
		return
	}
	s := *c.records[key]
	s.version, s.released = lab.Text(item, "recordVersionNumber"), lab.Text(item, "isReleased") == "1"
	c.records[key] = &s
	c.versions[s.version] = true
	c.applies(r, key, fmt.Sprintf("%+v", s))
}

// settleCommits checks, at the end of a run, that each result of a commit agrees with the
// logs in the table. The caller must hold c.mu.
func (c *checker) settleCommits() {
	times := map[string]int{}
	for _, log := range c.logs {
		for _, value := range log {
			times[value]++
		}
	}
	for value, call := range c.commits {
		n := times[value]
		switch {
		case n > 1:
			c.note("8: %s landed %d times", value, n)
		case !call.done:
			c.note("8: the commit of %s never returned", value)
		case call.err == nil && n == 0:
			c.note("8: %s never landed, and its commit returned nil", value)
		case call.err != nil && n != 0 && !errors.Is(call.err, leasehold.ErrUnknownOutcome) && !c.deleted[call.grant]:
			c.note("8: %s landed, and its commit failed: %v", value, call.err)
		}
	}
}
