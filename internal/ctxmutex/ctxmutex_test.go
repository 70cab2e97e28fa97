package ctxmutex_test

import (
	"context"
	"testing"

	"github.com/leasehold-go/leasehold/internal/ctxmutex"
)

func TestMutexLockReturnsFalseIfContextHasEnded(t *testing.T) {
	m := ctxmutex.New()
	ended, end := context.WithCancel(t.Context())
	end()
	for range 100 { // a Lock that only used select would choose the unlocked mutex in half of these calls
		if m.Lock(ended) {
			t.Fatal("locked")
		}
	}
	if !m.Lock(t.Context()) {
		t.Error("not locked")
	}
}
