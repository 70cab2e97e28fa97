//go:build unix

package cli_test

import (
	"slices"
	"strings"
	"testing"
)

func TestOwnerLongerThan255BytesIsRejected(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	owner := strings.Repeat("o", 255)
	for _, c := range []struct {
		args []string
		env  string
		code int
		says string
	}{
		{[]string{"run", "k", "--", "true"}, owner + "o", 125, "leasehold: LEASEHOLD_OWNER has 256 bytes: at most 255\n"},
		{[]string{"elect", "k", "--", "true"}, owner + "o", 125, "leasehold: LEASEHOLD_OWNER has 256 bytes: at most 255\n"},
		{[]string{"acquire", "k"}, owner + "o", 2, "leasehold: LEASEHOLD_OWNER has 256 bytes: at most 255\n"},
		{[]string{"break", "k"}, owner + "o", 2, "Owner has 256 bytes: at most 255\n"},
		{[]string{"run", "k", "--", "leasehold", "run", "j", "--", "true"}, owner, 0, ""},
	} {
		p := start(t, dir, append(env, "LEASEHOLD_OWNER="+c.env), c.args...)
		p.ends(c.code)
		if !strings.HasSuffix(p.stderr.String(), c.says) {
			t.Errorf("%q says %s", c.args, &p.stderr)
		}
	}
}

// owned returns a copy of env in which LEASEHOLD_OWNER names the given owner.
func owned(env []string, owner string) []string {
	return append(slices.Clip(env), "LEASEHOLD_OWNER="+owner)
}
