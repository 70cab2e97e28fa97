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

// Text describes an error in one line: what failed, the key, the table or file, and what to
// do next. For an SDK error it keeps only AWS's own message.
func Text(err error, where string) string {
	lost, isLost := As[*leasehold.LostError](err)
	held, isHeld := As[*leasehold.HeldError](err)
	op, failed := As[*leasehold.OpError](err)
	sdk, sent := As[*smithy.OperationError](err)
	switch {
	case isLost && lost.Err != nil:
		// The text of a lost lock contains the error of the last renewal. That error is
		// shortened here.
		brief := *lost
		brief.Err = nil
		return strings.ReplaceAll(visible.OneLine(Brief(err)), visible.OneLine(Brief(lost)), visible.OneLine(Brief(&brief))) + ": " + Reason(lost.Err)
	case isHeld && failed: // the last request of the wait failed
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
		return what + Reason(op.Err) + Remedy(op.Err, where)
	case noTable(err):
		return where + " does not exist: create it with leasehold table create, or check the region and endpoint"
	case sent:
		return sdk.Operation() + " on " + where + ": " + Reason(sdk) + Remedy(sdk, where)
	}
	return visible.OneLine(Brief(err)) + unfit(err)
}

// unfit returns advice for the error of a layout without sort key: which flag to leave out
// or to add. It returns "" for any other error.
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

// Brief returns an error's text without the prefix "leasehold: " and without the
// table, which the user has named.
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

// WithoutPath strips the operation and the path from a file error.
func WithoutPath(err error) error {
	if in, ok := As[*fs.PathError](err); ok {
		return in.Err
	}
	if link, ok := As[*os.LinkError](err); ok {
		return link.Err
	}
	return err
}

// Like returns an error with the given text that errors.Is and errors.As treat as err.
func Like(err error, text string) error { return &like{text, err} }

type like struct {
	text string
	err  error
}

func (e *like) Error() string { return e.text }

func (e *like) Unwrap() error { return e.err }

// insides lists the parts of errors in which libraries describe themselves, with plain
// replacements. The expressions are compiled at their first use, because most commands need
// none.
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

// Plain returns an error's text with the replacements of insides.
func Plain(text string) string {
	for _, in := range insides() {
		text = in.pattern.ReplaceAllString(text, in.plain)
	}
	return text
}

// Reason returns why a request failed, and why no other Region was asked. If there is
// advice about DynamoDB's answer, the text begins with it.
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
	if said, ok := own(err); ok {
		return said
	}
	text := err.Error()
	_, malformed, isMalformed := strings.Cut(text, "malformed HTTP") // compared as text, because net/http's error has no type of its own
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

// own returns the reason why a request failed, with advice, if that request was answered or
// was never sent. The advice applies even if the wait for the key has ended since. own
// returns false for a request without a reply.
func own(err error) (string, bool) {
	switch {
	case decide.NoCredentials(err) && strings.Contains(err.Error(), decide.NoMetadata): // no source had credentials, not even the metadata service
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

// ofFile returns the text of an error of a local store's file. It returns false for any other
// error.
func ofFile(api smithy.APIError) (text string, is bool) {
	text = strings.TrimPrefix(api.ErrorMessage(), "boltstore: ")
	fault, known := filefault.In(text)
	if known {
		text = fault.String() + ": " + text
	}
	return text, api.ErrorCode() == filefault.Code || known && api.ErrorCode() == "InternalServerError"
}

// FindLocker is the advice about a local store that does not answer.
const FindLocker = "find the process that keeps the file locked: fuser(1) names it"

// Remedy returns the advice about a request that got no reply. where names the store, as in
// Text. Remedy returns "" if Reason contains advice already.
func Remedy(err error, where string) string {
	isTable := where == "" || strings.HasPrefix(where, "table ")
	_, answered := own(err)
	switch {
	case answered:
		return ""
	case is[*net.OpError](err), IsTimeout(err) && isTable:
		return ": " + decide.CheckConnection
	case IsTimeout(err):
		return ": " + FindLocker
	}
	return ""
}

// IsTimeout reports whether a request got no reply in time.
func IsTimeout(err error) bool {
	var timed net.Error
	request := decide.RequestError(err)
	return errors.Is(request, context.DeadlineExceeded) || errors.As(request, &timed) && timed.Timeout()
}

// providerError returns the text of the credential provider's own error.
func providerError(err error) string {
	text := err.Error()
	for _, step := range []string{"get identity: ", "get credentials: ", "failed to refresh cached credentials, "} {
		if _, said, ok := strings.Cut(text, step); ok {
			text = said
		}
	}
	return text
}
