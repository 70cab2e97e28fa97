package failure

import (
	"regexp"
	"sync"
)

// insides are what libraries say of themselves in their errors, and what it means. They
// are compiled when they are first used: most commands need none.
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

// Plain returns an error's text without what means nothing to a person: the parts of
// the libraries that it has gone through.
func Plain(text string) string {
	for _, in := range insides() {
		text = in.pattern.ReplaceAllString(text, in.plain)
	}
	return text
}
