package failure

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
)

// kinds are what an error may be to who typed the command: of those that fit the first.
var kinds = []struct {
	name   string // in JSON
	fits   func(error) bool
	answer bool // it says no: nothing has failed
}{
	{"usage", is[*misuse.Error], false},
	{"usage", matches(leasehold.ErrPrefix), false},
	{"held", NotGranted, true},
	{"lost", matches(leasehold.ErrLost), true},
	{"not_found", NotFound, true},
	{"not_found", matches(election.ErrNoLeader), true},
	{"not_found", matches(election.ErrLeaderDead), true},
	{"changed", Changed, true},
	{"bad_record", matches(leasehold.ErrRecord), false},
	{"no_table", noTable, false},
	{"unsupported", matches(errors.ErrUnsupported), false},
	{"untold", matches(leasehold.ErrHolderUntold), false},
	{"unknown", matches(leasehold.ErrUnknownOutcome), false},
	{"aws", is[*leasehold.OpError], false},
	{"aws", is[smithy.APIError], false},
	{"aws", is[*smithy.OperationError], false},
	{"unknown", func(error) bool { return true }, false},
}

// Kind is the value of "error" in an error's JSON.
func Kind(err error) string {
	name, _ := kindOf(err)
	return name
}

func kindOf(err error) (name string, answer bool) {
	for _, k := range kinds {
		if k.fits(err) {
			return k.name, k.answer
		}
	}
	return "", false
}

func is[E error](err error) bool {
	_, ok := as[E](err)
	return ok
}

func as[E error](err error) (E, bool) {
	var target E
	ok := errors.As(err, &target)
	return target, ok
}

func matches(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// noTable reports whether there is no such table, by the library's word or by DynamoDB's,
// which what a command sends itself has alone.
func noTable(err error) bool {
	return errors.Is(err, leasehold.ErrTableNotFound) || is[*types.ResourceNotFoundException](err)
}

// subject is what an error of the library is about.
type subject struct {
	key     leasehold.Key // empty: none, or several
	table   string        // that its text names; the user has named it
	record  *leasehold.Record
	damaged bool // the record does not read: the text tells to type a command for the key
}

func subjectOf(err error) subject {
	if held, ok := as[*leasehold.HeldError](err); ok {
		return subject{key: held.Key, table: held.Table, record: &held.Holder}
	}
	if done, ok := as[*leasehold.DoneError](err); ok {
		return subject{key: done.Key, table: done.Table}
	}
	if lost, ok := as[*leasehold.LostError](err); ok {
		return subject{key: lost.Key, table: lost.Table, record: lost.By}
	}
	if changed, ok := as[*leasehold.ChangedError](err); ok {
		return subject{key: changed.Now.Key, table: changed.Table, record: &changed.Now}
	}
	if record, ok := as[*leasehold.RecordError](err); ok {
		return subject{key: record.Key, table: record.Table, damaged: true}
	}
	if prefix, ok := as[*leasehold.PrefixError](err); ok {
		return subject{key: prefix.Key, table: prefix.Table}
	}
	if permits, ok := as[*leasehold.PermitsError](err); ok {
		return subject{key: permits.Key}
	}
	if unsupported, ok := as[*leasehold.UnsupportedError](err); ok {
		return subject{table: unsupported.Table}
	}
	if op, ok := as[*leasehold.OpError](err); ok {
		return subject{key: op.Key}
	}
	return subject{}
}

// Record returns the record in an error, nil for none.
func Record(err error) *leasehold.Record { return subjectOf(err).record }
