package failure

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Text describes an error in one line: what failed, for which key and where,
// which is a table or a file, and what to do next. Of an SDK error it keeps only what AWS said.
func Text(err error, where string) string {
	lost, isLost := as[*leasehold.LostError](err)
	op, failed := as[*leasehold.OpError](err)
	sdk, sent := as[*smithy.OperationError](err)
	switch {
	case isLost && lost.Err != nil:
		// Its text contains that of the last renewal's error: shorten that.
		brief := *lost
		brief.Err = nil
		return strings.ReplaceAll(OneLine(Brief(err)), OneLine(Brief(lost)), OneLine(Brief(&brief))) + ": " + Reason(lost.Err)
	case failed:
		what := op.Op
		if op.Key != (leasehold.Key{}) {
			what += " " + wording.Key(op.Key)
		}
		what += " in " + where + ": "
		if noTable(err) {
			return what + "the table does not exist: create it with leasehold table create, or check the region and endpoint"
		}
		if errors.Is(err, leasehold.ErrUnknownOutcome) {
			what += "the outcome is unknown: "
		}
		if errors.Is(err, leasehold.ErrHolderUntold) {
			what += "the key is free, but its holder was not told: it may work on for up to twenty minutes, and its commits fail at once: "
		}
		return what + Reason(op.Err) + Remedy(op.Err)
	case noTable(err):
		return where + " does not exist: create it with leasehold table create, or check the region and endpoint"
	case sent:
		return sdk.Operation() + " on " + where + ": " + Reason(sdk) + Remedy(sdk)
	}
	return OneLine(Brief(err))
}

// Brief returns an error's text without the prefix "leasehold: " and without the
// table, which the user has named.
func Brief(err error) string {
	text, of := strings.TrimPrefix(err.Error(), "leasehold: "), subjectOf(err)
	if key := of.key.String(); len(key) > wording.LongestName {
		text = strings.ReplaceAll(text, key, wording.Middle(key, wording.LongestName))
	}
	if of.table != "" {
		text = strings.Replace(text, " in table "+of.table, "", 1)
	}
	if of.damaged {
		for _, command := range []string{"leasehold get --raw", "leasehold break --damaged", "leasehold forget"} {
			text = strings.Replace(text, command, command+" "+wording.ShellKey(of.key), 1)
		}
	}
	return text
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
