package failure

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Kind is the value of "error" in an error's JSON.
func Kind(err error) string {
	var usage *misuse.Error
	var op *leasehold.OpError
	var api smithy.APIError
	var sdk *smithy.OperationError
	switch {
	case errors.As(err, &usage):
		return "usage"
	case NotGranted(err):
		return "held"
	case errors.Is(err, leasehold.ErrLost):
		return "lost"
	case NotFound(err):
		return "not_found"
	case Changed(err):
		return "changed"
	case errors.Is(err, leasehold.ErrRecord):
		return "bad_record"
	case errors.Is(err, leasehold.ErrTableNotFound):
		return "no_table"
	case errors.Is(err, errors.ErrUnsupported):
		return "unsupported"
	case errors.Is(err, leasehold.ErrHolderUntold):
		return "untold"
	case errors.Is(err, leasehold.ErrUnknownOutcome):
		return "unknown"
	case errors.As(err, &op), errors.As(err, &api), errors.As(err, &sdk):
		return "aws"
	}
	return "unknown"
}

// Record returns the record in an error, nil for none.
func Record(err error) *leasehold.Record {
	var held *leasehold.HeldError
	var changed *leasehold.ChangedError
	var lost *leasehold.LostError
	switch {
	case errors.As(err, &held):
		return &held.Holder
	case errors.As(err, &changed):
		return &changed.Now
	case errors.As(err, &lost):
		return lost.By
	}
	return nil
}

// Text describes an error in one line: what failed, for which key and where,
// which is a table or a file, and what to do next. Of an SDK error it keeps only what AWS said.
func Text(err error, where string) string {
	var op *leasehold.OpError
	var lost *leasehold.LostError
	var sdk *smithy.OperationError
	switch {
	case errors.As(err, &lost) && lost.Err != nil:
		// Its text contains that of the last renewal's error: shorten that.
		brief := *lost
		brief.Err = nil
		return strings.ReplaceAll(OneLine(Brief(err)), OneLine(Brief(lost)), OneLine(Brief(&brief))) + ": " + Reason(lost.Err)
	case errors.As(err, &op):
		what := op.Op
		if op.Key != (leasehold.Key{}) {
			what += " " + wording.Key(op.Key)
		}
		what += " in " + where + ": "
		if errors.Is(err, leasehold.ErrTableNotFound) {
			return what + "the table does not exist: create it with leasehold table create, or check the region and endpoint"
		}
		if errors.Is(err, leasehold.ErrUnknownOutcome) {
			what += "the outcome is unknown: "
		}
		if errors.Is(err, leasehold.ErrHolderUntold) {
			what += "the key is free, but its holder was not told: it may work on for up to twenty minutes, and its commits fail at once: "
		}
		return what + Reason(op.Err) + Remedy(op.Err)
	case errors.Is(err, leasehold.ErrTableNotFound):
		return where + " does not exist: create it with leasehold table create, or check the region and endpoint"
	case errors.As(err, &sdk):
		return sdk.Operation() + " on " + where + ": " + Reason(sdk) + Remedy(sdk)
	}
	return OneLine(Brief(err))
}

// Brief returns an error's text without the prefix "leasehold: " and without the
// table, which the user has named.
func Brief(err error) string {
	text := strings.TrimPrefix(err.Error(), "leasehold: ")
	if key := keyIn(err).String(); len(key) > wording.LongestName {
		text = strings.ReplaceAll(text, key, wording.Middle(key, wording.LongestName))
	}
	var held *leasehold.HeldError
	var lost *leasehold.LostError
	var changed *leasehold.ChangedError
	var record *leasehold.RecordError
	var unsupported *leasehold.UnsupportedError
	switch {
	case errors.As(err, &held):
		return strings.Replace(text, " in table "+held.Table, "", 1)
	case errors.As(err, &lost):
		return strings.Replace(text, " in table "+lost.Table, "", 1)
	case errors.As(err, &changed):
		return strings.Replace(text, " in table "+changed.Table, "", 1)
	case errors.As(err, &record):
		text = strings.Replace(text, " in table "+record.Table, "", 1)
		key := wording.ShellKey(record.Key)
		text = strings.Replace(text, "leasehold get --raw", "leasehold get --raw "+key, 1)
		text = strings.Replace(text, "leasehold break --damaged", "leasehold break --damaged "+key, 1)
		return strings.Replace(text, "leasehold forget", "leasehold forget "+key, 1)
	case errors.As(err, &unsupported):
		return strings.Replace(text, " in table "+unsupported.Table, "", 1)
	}
	return text
}

// keyIn returns the key that an error of the library is about. Empty: none.
func keyIn(err error) leasehold.Key {
	var held *leasehold.HeldError
	var lost *leasehold.LostError
	var changed *leasehold.ChangedError
	var record *leasehold.RecordError
	var permits *leasehold.PermitsError
	var op *leasehold.OpError
	switch {
	case errors.As(err, &held):
		return held.Key
	case errors.As(err, &lost):
		return lost.Key
	case errors.As(err, &changed):
		return changed.Now.Key
	case errors.As(err, &record):
		return record.Key
	case errors.As(err, &permits):
		return permits.Key
	case errors.As(err, &op):
		return op.Key
	}
	return leasehold.Key{}
}

// OneLine joins the lines of text, such as those of errors.Join, into one on which all
// shows.
func OneLine(text string) string {
	return visible.Line(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
}

// WithoutPath strips the operation and the path from a file error.
func WithoutPath(err error) error {
	var in *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &in):
		return in.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
