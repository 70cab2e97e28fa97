package attempts

import (
	"errors"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

func endsAt(n int) protocol.Item {
	return protocol.Item{"key": &types.AttributeValueMemberS{Value: strconv.Itoa(n)}}
}

// A server whose listing repeats itself is detected soon after the first repeated key,
// wherever the cycle begins and however long it is.
func TestListingStopsIfServerRepeatsKeys(t *testing.T) {
	for _, first := range []int{0, 1, 2, 3, 7, 100, 1000} {
		for _, round := range []int{1, 2, 3, 8, 99, 1000} {
			var w Walk
			var err error
			pages := 0
			for ; err == nil && pages < 1e5; pages++ {
				at := pages
				if at >= first {
					at = first + (pages-first)%round
				}
				err = w.Pass(middleware.Metadata{}, []protocol.Item{}, endsAt(at))
			}
			var foreign *ForeignError
			if !errors.As(err, &foreign) || pages > 1+3*(first+round) {
				t.Errorf("%d pages, then a circle of %d: it ended after %d with %v", first, round, pages, err)
			}
		}
	}
}

func TestListingStopsIfServerReturnsToStartKey(t *testing.T) {
	w := Walk{Start: endsAt(1)}
	if err := w.Pass(middleware.Metadata{}, nil, endsAt(1)); err == nil {
		t.Error("it goes on")
	}
}

// A listing may have any number of empty pages, because a filter makes pages empty.
func TestListingContinuesWhileKeyAdvances(t *testing.T) {
	var w Walk
	for n := range 100_000 {
		if err := w.Pass(middleware.Metadata{}, []protocol.Item{}, endsAt(n)); err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Pass(middleware.Metadata{}, nil, nil); err != nil || len(w.Start) != 0 {
		t.Error(w.Start, err)
	}
}
