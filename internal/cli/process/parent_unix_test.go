//go:build unix

package process

import "testing"

func TestParentEndIsErrorForChildOfInit(t *testing.T) {
	was := parent
	t.Cleanup(func() { parent = was })
	for _, parent = range []int{0, 1} {
		if ended, err := ParentEnd(); err == nil || ended != nil {
			t.Errorf("parent %d: %v, %v", parent, ended, err)
		}
	}
}
