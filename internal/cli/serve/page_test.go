package serve

import (
	"net"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// The server must listen on all addresses of its host name. Otherwise another user could
// listen on a free one and receive requests of the page.
func TestUIPageListensOnAllAddressesOfItsHostName(t *testing.T) {
	if !isAddressHere(t.Context(), "::1") {
		t.Skip("this machine has no ::1")
	}
	at := lab.Must(ForPage(t.Context(), "127.0.0.1:0", false))(t)
	defer at.Close()
	host, port, err := net.SplitHostPort(at.Host)
	if err != nil || at.Host != at.Name || !strings.HasSuffix(host, ".localhost") {
		t.Errorf("it is at %s, its name is %s", at.Host, at.Name)
	}
	for _, ip := range []string{"127.0.0.1", "::1"} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(ip, port))
		if err == nil {
			t.Errorf("somebody else can listen on %s", l.Addr())
			_ = l.Close()
		}
	}
}

func TestUIPageIsNotServedIfOneAddressIsInUse(t *testing.T) {
	if !isAddressHere(t.Context(), "::1") {
		t.Skip("this machine has no ::1")
	}
	for _, c := range [][2]string{{"127.0.0.1", "::1"}, {"::1", "127.0.0.1"}} {
		theirs := lab.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(c[1], "0")))(t)
		defer theirs.Close()
		_, port, _ := net.SplitHostPort(theirs.Addr().String())
		if at, err := ForPage(t.Context(), net.JoinHostPort(c[0], port), false); err == nil {
			t.Errorf("it listens on %s alone", at.Listeners[0].Addr())
			at.Close()
		} else if !strings.Contains(err.Error(), "is in use") {
			t.Errorf("it says %q", err)
		}
	}
}

func TestUIPageOnWildcardAddressHasIPAddressInURL(t *testing.T) {
	at := lab.Must(ForPage(t.Context(), "0.0.0.0:0", true))(t)
	defer at.Close()
	if strings.Contains(at.Host, "localhost") || at.Name == at.Host || len(at.Listeners) != 1 {
		t.Errorf("it is at %s, its name is %s", at.Host, at.Name)
	}
}
