package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
)

// fetch is a program that replaces curl: it prints the body of the response from a URL, and
// fails if the status is not 200.
func fetch() {
	resp, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, err = io.Copy(os.Stdout, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		fmt.Fprintln(os.Stderr, resp.Status, err)
		os.Exit(1)
	}
}

var filtered = regexp.MustCompile(`\.(\w+)`)

// fields is a program that replaces jq -r. It fails unless its input is JSON and each field
// that the jq filter names is in one of the input's objects.
func fields() {
	missing := map[string]bool{}
	for _, m := range filtered.FindAllStringSubmatch(os.Args[2], -1) {
		missing[m[1]] = true
	}
	for d := json.NewDecoder(os.Stdin); ; {
		var object map[string]any
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) && len(missing) == 0 {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "without", missing, err)
			os.Exit(1)
		}
		for name := range object {
			delete(missing, name)
		}
	}
}
