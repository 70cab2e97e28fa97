package attempts

import (
	"context"
	"testing"
)

func TestSenderWithOneRegionDoesNotAllocate(t *testing.T) {
	s, ctx := &Sender{Table: "locks"}, context.Background()
	if n := testing.AllocsPerRun(1000, func() { s.noteRegion(ctx) }); n > 0 {
		t.Errorf("%v allocations after each request", n)
	}
}
