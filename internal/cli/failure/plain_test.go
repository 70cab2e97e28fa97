package failure

import "testing"

func TestATableCalledLeaseholdKeepsItsNameInErrors(t *testing.T) {
	for text, want := range map[string]string{
		"acquire k in table leasehold: the key is not UTF-8": "acquire k in table leasehold: the key is not UTF-8",
		"no place: boltstore: leasehold: the file is gone":   "no place: the file is gone",
		"leasehold: the file is gone":                        "the file is gone",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
