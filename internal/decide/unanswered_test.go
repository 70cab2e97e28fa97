package decide

import (
	"slices"
	"testing"
)

func TestConditionNamesPendingAttemptsAndLastReadVersion(t *testing.T) {
	tried := []string{"a", "b", "c", "d", "e"}
	for _, tc := range []struct {
		shown string
		most  int
		want  []string
	}{
		{"a", 9, tried},
		{"c", 9, []string{"c", "d", "e"}},
		{"e", 9, []string{"e"}},
		{"a", 3, []string{"a", "d", "e"}},
		{"c", 3, []string{"c", "d", "e"}},
		{"a", 1, []string{"a"}},
		{"another's", 9, tried},
		{"another's", 2, []string{"d", "e"}},
		{"", 5, tried},
	} {
		if got := StillToName(tried, tc.shown, tc.most); !slices.Equal(got, tc.want) {
			t.Errorf("%q shown, at most %d: %q, want %q", tc.shown, tc.most, got, tc.want)
		}
	}
}
