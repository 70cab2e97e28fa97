package load

import (
	"os"
	"strconv"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// count returns the number in the given environment variable. If the variable is unset, it
// returns usual, or usual divided by part under the race detector.
func count(t *testing.T, variable string, usual, part int) int {
	t.Helper()
	given := os.Getenv(variable)
	if given == "" {
		if lab.Race {
			return usual / part
		}
		return usual
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: it must be a number above 0", variable, given)
	}
	return n
}
