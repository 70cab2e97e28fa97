package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/serve"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/ui"
)

type uiFlags struct {
	addr         string
	unsafeListen bool
	allowBreak   bool
	tokenFile    string
	reads        float64
	every        arguments.Duration
}

// UI returns the command "leasehold ui".
func (c *Commands) UI() *cobra.Command {
	f := uiFlags{every: arguments.Duration{Duration: time.Second, Min: 100 * time.Millisecond}}
	cmd := &cobra.Command{
		Use:   "ui [flags]",
		Short: "See every lock, and what happened to it, in a browser",
		Args:  arguments.None,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.serveUI(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.addr, "addr", "127.0.0.1:0", "loopback `ADDRESS` to listen on; port 0 picks a free port")
	fl.BoolVar(&f.unsafeListen, "unsafe-listen", false, "allow any --addr; the network can read the token")
	fl.BoolVar(&f.allowBreak, "allow-break", false, "let the page break grants")
	fl.StringVar(&f.tokenFile, "token-file", "", "keep the secret of the tokens in `FILE`: open pages follow to the next start")
	fl.Float64Var(&f.reads, "reads", 100, "take at most `N` read units a second")
	fl.Var(&f.every, "every", "read the table once per `DURATION`, if --reads allows")
	return cmd
}

func (c *Commands) serveUI(cmd *cobra.Command, f uiFlags) error {
	if f.reads <= 0 || f.reads > 1e6 {
		return failure.MisuseOf(cmd, "--reads must be above 0, and at most 1000000")
	}
	secret, err := uiSecret(f.tokenFile)
	if err != nil {
		return err
	}
	return c.OnTable(cmd, c.Settings.Breaker(), func(ctx context.Context, t *store.Table) error {
		// Read one record before the server starts. If the table cannot be read or has another
		// layout, this read fails and the command reports the error. Otherwise the user would
		// see a page without locks.
		for _, err := range t.Locks.List(ctx, leasehold.ListOptions{}) {
			if err != nil && !holders.IsDamaged(err) {
				return err
			}
			break
		}
		at, err := serve.ForPage(ctx, f.addr, f.unsafeListen)
		if err != nil {
			return err
		}
		defer at.Close()
		host, _, _ := net.SplitHostPort(f.addr)
		server, err := ui.New(ui.Config{
			Source: ui.NewTable(t.Requests(), t.Table, t.Locks, t.Proto, t.Layout.Capabilities()), Layout: t.Layout, Table: t.Table, Location: t.Location,
			Secret: secret, Name: at.Name, Rate: f.reads, Every: f.every.Duration, AllowBreak: f.allowBreak, Remote: f.unsafeListen, Hosts: []string{host},
			Explain: func(err error) string { return failure.Text(err, t.Where()) },
			Broke:   c.sayBroke,
		}, t.Proto, t.Layout.Capabilities())
		if err != nil {
			return err
		}
		return c.runUI(ctx, t, server, at)
	})
}

// runUI serves the page until ctx is cancelled or the server fails.
func (c *Commands) runUI(ctx context.Context, t *store.Table, server *ui.Server, at *serve.Page) error {
	web := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	defer web.Close()
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { server.Run(ctx) })
	defer reading.Wait()
	defer cancel()
	served := make(chan error, len(at.Listeners))
	for _, l := range at.Listeners {
		go func() { served <- web.Serve(l) }()
	}
	url := "http://" + at.Host + "/#token=" + server.Token()
	const words = "the locks of %s in %s: %s\nWhoever has this URL can see them. Press Ctrl-C to stop.\n"
	if err := c.SayURL(url, map[string]string{"url": url}, words, t.Table, t.Location, url); err != nil {
		return err
	}
	return serve.Wait(ctx, served)
}

// sayBroke prints to standard error which grant a user of the web page has broken, and the user's
// reason. It prints this even with -q, because no other log contains it.
func (c *Commands) sayBroke(r leasehold.Record, reason string) {
	text := fmt.Sprintf("%s: the page broke the grant of %s", wording.Time(c.Now()), say.Grant(r))
	if reason != "" {
		text += ": " + reason
	}
	c.Say.Always("%s", text)
}

// shortestSecret is the minimum number of characters of the secret in --token-file. A file
// with a shorter text is refused, because the user has probably named a wrong file.
const shortestSecret = 32

// uiSecret returns the secret that the file contains. If the file does not exist, uiSecret
// writes a new secret to it. If file is "", it returns a new secret and stores it nowhere.
func uiSecret(file string) (string, error) {
	secret := ui.NewSecret()
	if file == "" {
		return secret, nil
	}
	in, err := plainfile.OpenNamed(file, os.O_RDONLY)
	if err == nil {
		defer in.Close()
		return keptSecret(file, in)
	}
	if errors.Is(err, os.ErrNotExist) {
		if file, err = plainfile.Named(file); err == nil {
			err = plainfile.Replace(file, []byte(secret+"\n"), 0o600)
		}
	}
	if err != nil {
		return "", failure.Misusef("--token-file: %v", err)
	}
	return secret, nil
}

// keptSecret returns the secret that an open file contains. It returns an error if other users may
// read the file. The parameter "file" is the file's name, for error messages.
func keptSecret(file string, in *os.File) (string, error) {
	content, err := io.ReadAll(io.LimitReader(in, 1<<10))
	info, unknown := in.Stat()
	if err := errors.Join(err, unknown); err != nil {
		return "", failure.Misusef("--token-file: %v", err)
	}
	secret := strings.TrimSpace(string(content))
	if len(secret) < shortestSecret || strings.Trim(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return "", failure.Misusef("--token-file %s: it contains no secret: remove it, and a new one is made", file)
	}
	if info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		return "", failure.Misusef("--token-file %s: other users may read it: chmod 600 %s", file, file)
	}
	return secret, nil
}
