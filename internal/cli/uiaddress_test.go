package cli

import (
	"net"
	"strings"
	"testing"
)

// TestThePageListensWhereverItsNameLeads: another user who listened on one of the
// addresses would be asked for the page.
func TestThePageListensWhereverItsNameLeads(t *testing.T) {
	if !isAddressHere(t.Context(), "::1") {
		t.Skip("this machine has no ::1")
	}
	at, err := listenUI(t.Context(), uiFlags{addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer at.close()
	host, port, err := net.SplitHostPort(at.host)
	if err != nil || at.host != at.name || !strings.HasSuffix(host, ".localhost") {
		t.Errorf("it is at %s, its name is %s", at.host, at.name)
	}
	for _, ip := range []string{"127.0.0.1", "::1"} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(ip, port))
		if err == nil {
			t.Errorf("somebody else can listen on %s", l.Addr())
			_ = l.Close()
		}
	}
}

func TestThePageIsNotServedWhereSomebodyElseHasHalfOfItsName(t *testing.T) {
	if !isAddressHere(t.Context(), "::1") {
		t.Skip("this machine has no ::1")
	}
	for _, c := range [][2]string{{"127.0.0.1", "::1"}, {"::1", "127.0.0.1"}} {
		theirs, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(c[1], "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer theirs.Close()
		_, port, _ := net.SplitHostPort(theirs.Addr().String())
		if at, err := listenUI(t.Context(), uiFlags{addr: net.JoinHostPort(c[0], port)}); err == nil {
			t.Errorf("it listens on %s alone", at.listeners[0].Addr())
			at.close()
		} else if !strings.Contains(err.Error(), "is in use") {
			t.Errorf("it says %q", err)
		}
	}
}

func TestThePageIsAtItsAddressWhereNoNameLeads(t *testing.T) {
	at, err := listenUI(t.Context(), uiFlags{addr: "0.0.0.0:0", unsafeListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer at.close()
	if strings.Contains(at.host, "localhost") || at.name == at.host || len(at.listeners) != 1 {
		t.Errorf("it is at %s, its name is %s", at.host, at.name)
	}
}
