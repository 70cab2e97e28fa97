package lab

import "testing"

// OK ends the test if err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must takes the two results of a call, and returns a function. The function returns the first
// result, or ends the test if the call failed:
//
//	content := lab.Must(os.ReadFile(path))(t)
func Must[T any](result T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return result
	}
}
