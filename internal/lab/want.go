package lab

import (
	"cmp"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Want fails the test unless "got" and "want" are deeply equal. The parameter "what" names the
// value.
func Want[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// WantTook fails the test unless the time since "began" is at least "least" and at most "most".
func WantTook(t testing.TB, what string, began time.Time, least, most time.Duration) {
	t.Helper()
	if took := time.Since(began); took < least || took > most {
		t.Errorf("%s %v, want %v to %v", what, took, least, most)
	}
}

// WantReleased fails the test unless the record of key is marked as released.
func (w *World) WantReleased(key string) {
	w.T.Helper()
	if !w.IsReleased(key) {
		w.T.Errorf("%s is not released: %v", key, w.Item(key))
	}
}

// WantRange fails the test unless got is between least and most, inclusive. The parameter "what"
// names the value.
func WantRange[T cmp.Ordered](t testing.TB, what string, got, least, most T) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

// WantFailed fails the test if err is nil. The parameter "what" names the call that returned err.
func WantFailed(t testing.TB, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
	}
}

// WantNoFile fails the test if there is a file or a directory at path. The parameter "what" names
// this file or directory.
func WantNoFile(t testing.TB, what, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %s exists, or cannot be checked: %v", what, path, err)
	}
}

// WantAs fails the test unless errors.As finds an E in err. The parameter "what" names the call
// that returned err.
func WantAs[E error](t testing.TB, what string, err error) {
	t.Helper()
	if !errors.As(err, new(E)) {
		t.Errorf("%s: %v, want a %v", what, err, reflect.TypeFor[E]())
	}
}

// WantText fails the test unless err is an error whose text contains each of parts. The parameter
// "what" names the call that returned err.
func WantText(t testing.TB, what string, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want an error with %q", what, err, part)
		}
	}
}
