package invocation

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestQuietFlagHidesOnlyMessagesAboutTemporaryFailures(t *testing.T) {
	for lasting, want := range map[bool]string{true: "leasehold: DNS has no host\n", false: ""} {
		var stderr bytes.Buffer
		in := New(Env{Stdout: &bytes.Buffer{}, Stderr: &stderr, LookupEnv: func(string) (string, bool) { return "", false }, Now: time.Now})
		in.Quiet = true
		in.Say.Configure(true, false)
		in.sayTrouble(requests.News{Kind: requests.NoAnswer, Line: "DNS has no host", Lasting: lasting})
		lab.Want(t, fmt.Sprint("lasting ", lasting), stderr.String(), want)
	}
}
