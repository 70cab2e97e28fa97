package failure

// Like is an error with a text of its own that is another to errors.Is and errors.As.
func Like(err error, text string) error { return &like{text, err} }

type like struct {
	text string
	err  error
}

func (e *like) Error() string { return e.text }

func (e *like) Unwrap() error { return e.err }
