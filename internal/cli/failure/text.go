package failure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// Text describes err in one line: what failed, with the key and the table or file, and what
// to do next. The parameter "where" is the name of the store, as in "table NAME".
func Text(err error, where string) string {
	lost, isLost := As[*leasehold.LostError](err)
	held, isHeld := As[*leasehold.HeldError](err)
	op, failed := As[*leasehold.OpError](err)
	sdk, sent := As[*smithy.OperationError](err)
	switch {
	case isLost && lost.Err != nil:
		// The text of a LostError contains the error of the last renewal. Replace this error
		// by the shorter text that Reason returns for it.
		brief := *lost
		brief.Err = nil
		return strings.ReplaceAll(visible.OneLine(Brief(err)), visible.OneLine(Brief(lost)), visible.OneLine(Brief(&brief))) + ": " + Reason(lost.Err)
	case isHeld && failed: // the key was held, and the last request to acquire it failed
		brief := *held
		brief.Err = nil
		text := strings.ReplaceAll(visible.OneLine(Brief(err)), visible.OneLine(Brief(held)), visible.OneLine(Brief(&brief)))
		if waited, ok := As[*WaitedError](err); ok {
			text += ": " + waited.Error()
		}
		return text + ": " + Reason(op.Err) + Remedy(op.Err, where)
	case failed:
		what := op.Op
		if op.Key != (leasehold.Key{}) {
			what += " " + op.Key.String()
		}
		what += " in " + where + ": "
		switch {
		case noTable(err) && !isTable(where):
			return what + "the file was removed or replaced, and the locks in it are gone"
		case noTable(err):
			return what + "the table does not exist: create it with leasehold table create, or check the region and endpoint"
		}
		if errors.Is(err, leasehold.ErrUnknownOutcome) {
			what += "the outcome is unknown: "
		}
		if errors.Is(err, leasehold.ErrHolderUntold) {
			what += "the key is free, but its holder was not told: it may work on for up to twenty minutes, and its commits fail at once: "
		}
		return what + Reason(op.Err) + Remedy(op.Err, where)
	case noTable(err):
		return where + " does not exist: create it with leasehold table create, or check the region and endpoint"
	case sent:
		return sdk.Operation() + " on " + where + ": " + Reason(sdk) + Remedy(sdk, where)
	}
	return visible.OneLine(Brief(err)) + unfit(err)
}

// unfit returns advice if the user gave --sort-key, but the layout has no sort key. The advice is
// to leave out the flag or, in a layout with --attr sort=NAME, to name the table's sort key. For
// any other error, unfit returns "".
func unfit(err error) string {
	lacks, is := As[*leasehold.UnsupportedError](err)
	switch {
	case !is || lacks.Feature != "sort key":
		return ""
	case lacks.Layout == layout.DyndbMutex{}.Name():
		return ": leave out --sort-key"
	}
	return ": leave out --sort-key or, if the table has one, name it with --attr sort=NAME"
}

// Brief returns the text of err without the prefix "leasehold: " and without the table's
// name, because the user has named the table.
func Brief(err error) string {
	text, of := strings.TrimPrefix(err.Error(), "leasehold: "), subjectOf(err)
	if of.table != "" {
		text = strings.Replace(text, " in table "+of.table, "", 1)
	}
	if of.damaged != nil {
		for _, command := range []string{"leasehold break", "leasehold forget"} {
			text = strings.Replace(text, command, command+" "+wording.ShellKey(of.damaged.Key), 1)
		}
	}
	return text
}

// WithoutPath returns the cause of a file error: for "open PATH: permission denied", the error
// "permission denied". The caller's message already names the file.
func WithoutPath(err error) error {
	if in, ok := As[*fs.PathError](err); ok {
		return in.Err
	}
	if link, ok := As[*os.LinkError](err); ok {
		return link.Err
	}
	return err
}

// Like returns an error that wraps err and has the given text.
func Like(err error, text string) error { return &like{text, err} }

type like struct {
	text string
	err  error
}

func (e *like) Error() string { return e.text }

func (e *like) Unwrap() error { return e.err }

// insides lists patterns, each with a plain replacement. Each pattern matches a part of an error's
// text that only describes the internals of a library. The patterns are compiled when they are
// first used, because most commands need none.
var insides = sync.OnceValue(func() []inside {
	return []inside{
		{regexp.MustCompile(`operation error DynamoDB: \w+, `), ""},
		{regexp.MustCompile(`https response error StatusCode: \d+, RequestID: [^,]*, `), ""},
		{regexp.MustCompile(`exceeded maximum number of attempts, \d+, `), ""},
		{regexp.MustCompile(`request send failed, `), ""},
		{regexp.MustCompile(`canceled, context canceled|context canceled`), "it was ended"},
		{regexp.MustCompile(`(?:Post|Get|Put) "([^"]+)": `), "no connection to $1: "},
		{regexp.MustCompile(`dial tcp(?: [^ ]+)?: `), ""},
		{regexp.MustCompile(`context deadline exceeded(?: \(Client\.Timeout exceeded while awaiting headers\))?`), "no answer in time"},
		{regexp.MustCompile(`strconv\.\w+: parsing ("[^"]*"): [a-z ]+`), "$1 is not a number"},
		{regexp.MustCompile(`(^|: |; )(?:(?:boltstore|localdynamo|leasehold): )+`), "$1"},
	}
})

type inside struct {
	pattern *regexp.Regexp
	plain   string
}

// Plain returns text with all patterns of insides replaced.
func Plain(text string) string {
	for _, in := range insides() {
		text = in.pattern.ReplaceAllString(text, in.plain)
	}
	return text
}

// Reason returns why a request failed. If leasehold has advice about DynamoDB's reply, the
// text begins with that advice. If --failover is given but the client cannot switch to another
// Region, the text ends with the reason for this.
func Reason(err error) string {
	if stayed, is := As[interface {
		error
		NoFailover() string
	}](err); is {
		return reason(err) + ": " + visible.Message(stayed.NoFailover())
	}
	return reason(err)
}

func reason(err error) string {
	if said, ok := ownReason(err); ok {
		return said
	}
	text := err.Error()
	_, malformed, isMalformed := strings.Cut(text, "malformed HTTP") // found by its text, because net/http has no type for this error
	var address *net.OpError
	var link *url.Error
	switch {
	case isMalformed:
		return visible.Message(decide.NotDynamoDB + ": malformed HTTP" + malformed)
	case errors.As(err, &address) && errors.As(err, &link):
		return visible.Message(fmt.Sprintf("no connection to %s: %v", link.URL, address.Err))
	case IsTimeout(err):
		return "no answer in time"
	case strings.Contains(text, "Missing Region"), strings.Contains(text, "not a valid host label"), strings.Contains(text, "Invalid Configuration"):
		return "no region: set AWS_REGION or use --region"
	}
	return visible.Message(text)
}

// ownReason returns why a request failed, with advice, if the request got a reply or was never
// sent. It returns false if the request was sent but got no reply.
func ownReason(err error) (string, bool) {
	switch {
	case decide.NoCredentials(err) && strings.Contains(err.Error(), decide.NoMetadata): // no source had credentials, not even the EC2 metadata service
		return "no credentials were found in AWS_ACCESS_KEY_ID, the profile (~/.aws/config and credentials) or this machine's metadata service: type aws configure or aws sso login, set AWS_PROFILE, or use --profile", true
	case decide.NoCredentials(err):
		return visible.Message("no credentials: set AWS_PROFILE or the AWS_ variables, or use --profile: " + providerError(err)), true
	case decide.NotSigned(err) && decide.ServerSilent(err):
		return visible.Message("no credentials: what provides them does not answer: " + providerError(err)), true
	case decide.NotSigned(err):
		return visible.Message("the request could not be signed: check the source of the credentials: " + providerError(err)), true
	}
	if foreign, is := As[*attempts.ForeignError](err); is {
		return visible.Message(decide.NotDynamoDB + ": " + foreign.Error()), true
	}
	if unread, is := As[*smithy.DeserializationError](err); is {
		return visible.Message(decide.NotDynamoDB + ": " + unread.Error()), true
	}
	if api, is := As[smithy.APIError](err); is {
		said := api.ErrorCode()
		if api.ErrorMessage() != "" {
			said += ": " + api.ErrorMessage()
		}
		if text, is := ofFile(api); is {
			return visible.Message(text), true
		}
		if advice := decide.Advice(err); advice != "" {
			said = advice + ": " + said
		}
		return visible.Message(said), true
	}
	return "", false
}

// ofFile returns the text of an error reply, and whether a local store's file caused the
// error.
func ofFile(api smithy.APIError) (text string, caused bool) {
	text = strings.TrimPrefix(api.ErrorMessage(), "boltstore: ")
	fault, known := filefault.In(text)
	if known {
		text = fault.String() + ": " + text
	}
	return text, api.ErrorCode() == filefault.Code || known && api.ErrorCode() == "InternalServerError"
}

// FindLocker is the advice if a local store does not answer. The reason is probably that
// another process keeps the store's file locked.
const FindLocker = "find the process that keeps the file locked: fuser(1) names it"

// Remedy returns advice for a request that got no reply. The parameter "where" is the name of
// the store, as in Text. If the request got a reply or was never sent, Remedy returns "",
// because the text that Reason returns already contains any advice.
func Remedy(err error, where string) string {
	_, answered := ownReason(err)
	switch {
	case answered:
	case is[*net.OpError](err), IsTimeout(err) && isTable(where):
		return ": " + decide.CheckConnection
	case IsTimeout(err):
		return ": " + FindLocker
	}
	return ""
}

// isTable reports whether "where" (as in Text) is the name of a table in DynamoDB rather than of a
// local store.
func isTable(where string) bool { return where == "" || strings.HasPrefix(where, "table ") }

// IsTimeout reports whether err means that no reply to a request arrived in time.
func IsTimeout(err error) bool {
	var timed net.Error
	request := decide.RequestError(err)
	return errors.Is(request, context.DeadlineExceeded) || errors.As(request, &timed) && timed.Timeout()
}

// providerError returns the text of the credential provider in err: the text of err without
// the SDK's prefixes, such as "get identity: ".
func providerError(err error) string {
	text := err.Error()
	for _, step := range []string{"get identity: ", "get credentials: ", "failed to refresh cached credentials, "} {
		if _, said, ok := strings.Cut(text, step); ok {
			text = said
		}
	}
	return text
}
