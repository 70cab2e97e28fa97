package expr

import (
	"slices"
	"strings"
	"testing"
)

func TestReservedWordsAreRejectedInAnyCase(t *testing.T) {
	words := strings.Fields(reservedWords)
	if len(words) != 573 {
		t.Errorf("%d reserved words; DynamoDB has 573", len(words))
	}
	if !slices.IsSorted(words) {
		t.Error("the list is not in order: a word was lost or added by hand")
	}
	longest := 0
	for _, word := range words {
		longest = max(longest, len(word))
		for _, spelling := range []string{word, strings.ToLower(word), word[:1] + strings.ToLower(word[1:])} {
			if !Reserved(spelling) {
				t.Errorf("Reserved(%q) = false", spelling)
			}
		}
	}
	if longest != maxReserved {
		t.Errorf("maxReserved = %d, the longest word has %d", maxReserved, longest)
	}
	for _, free := range []string{"id", "ownerName", "leaseDuration", "keyx", "", strings.Repeat("a", 300)} {
		if Reserved(free) {
			t.Errorf("Reserved(%q) = true", free)
		}
	}
}
