package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/ui"
)

type uiFlags struct {
	addr         string
	unsafeListen bool
	allowBreak   bool
	tokenFile    string
	reads        float64
	every        time.Duration
}

func (a *app) newUI() *cobra.Command {
	f := uiFlags{every: time.Second}
	cmd := &cobra.Command{
		Use:   "ui [flags]",
		Short: "See every lock, and what happened to it, in a browser",
		Long: `Serve a page for the browser that shows every lock of the table as it
stands and changes, and what has happened to each since this command was
started. Prints the URL, which has an access token, opens no browser, and
serves until it is stopped.

Reads the whole table again and again, page open or not, once for all pages,
with consistent reads and never faster than --reads. The page says what that
takes, and can slow it down or stop it.`,
		Example: `  leasehold ui
  leasehold ui --table locks --allow-break
  leasehold ui --addr 127.0.0.1:8765 --token-file ~/.leasehold-ui-token`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.reads <= 0 || f.reads > 1e6 {
				return usageOf(cmd, "--reads must be above 0, and at most 1000000")
			}
			return a.serveUI(cmd, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.addr, "addr", "127.0.0.1:0", "loopback `ADDRESS` to listen on; port 0 picks a free port")
	fl.BoolVar(&f.unsafeListen, "unsafe-listen", false, "allow any --addr; the network can read the token")
	fl.BoolVar(&f.allowBreak, "allow-break", false, "let the page break grants")
	fl.StringVar(&f.tokenFile, "token-file", "", "keep the access token in `FILE`, for open pages to outlive a restart")
	fl.Float64Var(&f.reads, "reads", 100, "take at most `N` read units a second")
	fl.Var(durationFlag{d: &f.every, min: 100 * time.Millisecond}, "every", "read the table once per `DURATION`, if --reads allows")
	return cmd
}

func (a *app) serveUI(cmd *cobra.Command, f uiFlags) error {
	token, err := uiToken(f.tokenFile)
	if err != nil {
		return err
	}
	s, err := a.open(cmd, "")
	if err != nil {
		return err
	}
	defer s.close()
	return s.withLocksOf(cmd.Context(), a.breaker(), func(ctx context.Context, locks *leasehold.Client) error {
		// A table that cannot be read is an error now, not a page without locks.
		for _, err := range locks.List(ctx) {
			if err != nil && !errors.Is(err, leasehold.ErrBadRecord) {
				return cause(ctx, err)
			}
			break
		}
		proto, err := records.Of(s.layout)
		if err != nil {
			return err
		}
		listener, err := listenUI(ctx, f)
		if err != nil {
			return err
		}
		host, _, _ := net.SplitHostPort(f.addr)
		server, err := ui.New(ui.Config{
			Source: ui.NewTable(s.db, s.table, locks, proto), Layout: s.layout, Table: s.table, Location: s.location,
			Token: token, Rate: f.reads, Every: f.every, AllowBreak: f.allowBreak, Remote: f.unsafeListen, Hosts: []string{host},
			Explain: s.errorText,
			Broke:   a.sayBroke,
		}, proto, locks.Capabilities(), listener.Addr())
		if err != nil {
			_ = listener.Close()
			return err
		}
		return a.runUI(ctx, s, server, listener, token)
	})
}

// runUI serves until ctx ends.
func (a *app) runUI(ctx context.Context, s *store, server *ui.Server, listener net.Listener, token string) error {
	web := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	defer web.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	read := make(chan struct{})
	go func() {
		defer close(read)
		server.Run(ctx)
	}()
	defer func() {
		cancel(context.Canceled)
		<-read
	}()
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	url := "http://" + listener.Addr().String() + "/?token=" + token
	const words = "the locks of %s in %s: %s\nWhoever has this URL can see them. Press Ctrl-C to stop.\n"
	if err := a.sayURL(url, "url", words, s.table, s.location, url); err != nil {
		return err
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return nil // a signal is the normal way to end it
	}
}

// sayBroke tells whoever started the server of a break, even with -q: it is the only
// trace of who broke what, and why.
func (a *app) sayBroke(r leasehold.Record, reason string) {
	text := fmt.Sprintf("%s: the page broke the grant of %s to %s", timeJSON(a.Now()), printable(r.Key.String()), shortOwner(r.Owner))
	if r.Token != 0 {
		text += fmt.Sprintf(" (token %d)", r.Token)
	}
	if reason != "" {
		text += ": " + reason
	}
	a.say.always("%s", text)
}

// listenUI listens on this machine only, unless told otherwise.
func listenUI(ctx context.Context, f uiFlags) (net.Listener, error) {
	host, _, err := net.SplitHostPort(f.addr)
	if err != nil {
		return nil, usagef("--addr %s: use HOST:PORT, such as 127.0.0.1:8765", f.addr)
	}
	if !f.unsafeListen && !isThisMachine(host) {
		return nil, usagef("--addr %s: the page is for this machine only: use 127.0.0.1 and a tunnel such as ssh -L, or add --unsafe-listen", f.addr)
	}
	return listen(ctx, f.addr)
}

// shortestToken is the least that is taken for an access token, so that a file of
// something else is not.
const shortestToken = 32

// uiToken returns a new access token, or the one in file, which it creates.
func uiToken(file string) (string, error) {
	if file == "" {
		return ui.NewToken(), nil
	}
	b, err := os.ReadFile(file)
	if err == nil {
		return kept(file, string(b))
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", usagef("--token-file: %v", err)
	}
	token := ui.NewToken()
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", usagef("--token-file: %v", err)
	}
	_, err = out.WriteString(token + "\n")
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(file)
		return "", usagef("--token-file: %v", err)
	}
	return token, nil
}

// kept is the token in a file.
func kept(file, content string) (string, error) {
	token := strings.TrimSpace(content)
	if len(token) < shortestToken || strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return "", usagef("--token-file %s: there is no access token in it: remove it, and a new one is made", file)
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", usagef("--token-file: %v", err)
	}
	if info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		return "", usagef("--token-file %s: others may read it: chmod 600 %s", file, file)
	}
	return token, nil
}
