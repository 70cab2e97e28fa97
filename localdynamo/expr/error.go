package expr

import "fmt"

// Error is the reason why an expression is refused, in DynamoDB's words. The engine puts the
// name of the request's parameter before the reason.
type Error struct {
	Reason string
}

// Error returns e.Reason.
func (e *Error) Error() string { return e.Reason }

func refuse(format string, args ...any) *Error {
	return &Error{Reason: fmt.Sprintf(format, args...)}
}

// MaxSize is the maximum size of an expression, in bytes.
const MaxSize = 4096

// checkSize refuses an expression that is empty or too long, before it is parsed.
func checkSize(source string) error {
	if source == "" {
		return refuse("The expression can not be empty;")
	}
	if len(source) > MaxSize {
		return refuse("Expression size has exceeded the maximum allowed size; expression size: %d", len(source))
	}
	return nil
}
