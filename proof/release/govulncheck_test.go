package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// database starts a server that imitates Go's vulnerability database.
func database(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte(`{"modified":"2026-11-20T10:00:00Z"}`)) // ignores the error, which occurs if the client has disconnected
}

// checked runs the vulnerability check of all released modules, but calls check instead of
// govulncheck. It returns the output and the number of calls.
func checked(t *testing.T, server *httptest.Server, check func() error) (said string, modules int, err error) {
	t.Helper()
	var say strings.Builder
	v := vulnerabilityCheck{
		database: server.URL, client: server.Client(), say: &say,
		check: func(context.Context, string) error { modules++; return check() },
	}
	err = v.released(t.Context(), "../..")
	return say.String(), modules, err
}

func TestKnownVulnerabilityInReleaseIsError(t *testing.T) {
	found := errors.New("exit status 3")
	said, modules, err := checked(t, database(t, healthy), func() error { return found })
	if !errors.Is(err, found) || modules != 1+len(adapters) {
		t.Errorf("%v after %d modules: %s", err, modules, said)
	}
	if said, modules, err := checked(t, database(t, healthy), func() error { return nil }); err != nil || modules != 1+len(adapters) {
		t.Errorf("nothing was found: %v after %d modules: %s", err, modules, said)
	}
}

func TestGovulncheckWithoutDatabaseIsSkippedAndReported(t *testing.T) {
	gone := database(t, healthy)
	gone.Close()
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
	for name, server := range map[string]*httptest.Server{
		"none": gone, "a page": database(t, page), "an error": database(t, http.NotFound),
	} {
		said, modules, err := checked(t, server, func() error { return errors.New("was run") })
		if err != nil || modules != 0 || !strings.Contains(said, "govulncheck was not run:") {
			t.Errorf("%s: %v after %d modules: %q", name, err, modules, said)
		}
	}
}

func TestVulnerabilityCheckIsSkippedIfDatabaseDoesNotAnswer(t *testing.T) {
	end := make(chan struct{})
	server := database(t, func(http.ResponseWriter, *http.Request) { <-end })
	defer close(end)
	server.Client().Timeout = time.Millisecond
	said, modules, err := checked(t, server, func() error { return errors.New("was run") })
	if err != nil || modules != 0 || !strings.Contains(said, "govulncheck was not run:") {
		t.Errorf("%v after %d modules: %q", err, modules, said)
	}
	if timeout := newVulnerabilityCheck("").client.Timeout; timeout <= 0 || timeout > time.Minute {
		t.Errorf("the real check waits for %s", timeout)
	}
}

func TestVulnerabilityDatabaseFailureIsNotReportedAsFinding(t *testing.T) {
	server := database(t, healthy)
	said, modules, err := checked(t, server, func() error {
		server.Close()
		return errors.New("connection refused")
	})
	if err != nil || modules != 1 || !strings.Contains(said, "not run to its end:") {
		t.Errorf("%v after %d modules: %q", err, modules, said)
	}
}
