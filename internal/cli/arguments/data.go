package arguments

import (
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/plainfile"
)

// Data is --data: the text itself, or @FILE.
type Data struct {
	text  string
	Given bool
}

// Flag is the flag.
func (d *Data) Flag(fl *pflag.FlagSet) {
	fl.Var(d, "data", "store `TEXT` in the record, until other data is; @FILE reads it from FILE")
}

func (d *Data) String() string { return d.text }

// Type is that of other flags which take a text.
func (*Data) Type() string { return "string" }

// Set is called if the flag was given.
func (d *Data) Set(text string) error {
	d.text, d.Given = text, true
	return nil
}

// Option returns the option for the call, nil if the flag was not given.
func (d *Data) Option(stdin io.Reader) (leasehold.RecordOption, error) {
	if !d.Given {
		return nil, nil
	}
	path, isFile := strings.CutPrefix(d.text, "@")
	if !isFile {
		return leasehold.WithData([]byte(d.text)), nil
	}
	var b []byte
	var err error
	if path == "-" {
		b, err = io.ReadAll(stdin)
	} else {
		b, err = plainfile.ReadNamed(path)
	}
	if err != nil {
		return nil, misuse.Errorf("--data: cannot read %s: %v", path, failure.WithoutPath(err))
	}
	return leasehold.WithData(b), nil
}
