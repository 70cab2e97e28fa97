package ui

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestSecretsAndHostNamesAreLongAndUnique(t *testing.T) {
	if a, b := NewSecret(), NewSecret(); len(a) < 40 || a == b {
		t.Errorf("secrets %q and %q", a, b)
	}
	if a, b := NewName(), NewName(); len(a) < 30 || a == b || !strings.HasSuffix(a, ".localhost") {
		t.Errorf("names %q and %q", a, b)
	}
}

// When a server has ended, another program may listen on its port and receive a token. That
// token opens no later server with the same secret.
func TestTokenIsRejectedByOtherServers(t *testing.T) {
	for name, other := range map[string]string{
		"the next on its port":     tokenFor(secret, "the-next.localhost:4711"),
		"its name on another port": tokenFor(secret, "a-name-of-these-tests.localhost:4712"),
		"another secret":           tokenFor("another", named),
		"a proof":                  proofFor(secret, strings.Repeat("00", nonceLength), named),
		"the secret":               secret,
	} {
		if got := knock(door(false), "GET", "/events", header("Authorization", "Bearer "+other)); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, got.StatusCode)
		}
	}
}

func TestServerProvesThatItKnowsSecret(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := serve(t, w, layout.Native{})
		ask := func(nonce string) (int, map[string]string) {
			r := httptest.NewRequest(http.MethodGet, "http://b.localhost:4711/who", nil)
			r.URL.RawQuery = "nonce=" + nonce
			answer := httptest.NewRecorder()
			b.server.ServeHTTP(answer, r)
			said := map[string]string{}
			lab.OK(t, json.NewDecoder(answer.Body).Decode(&said))
			return answer.Code, said
		}
		one, two := strings.Repeat("01", nonceLength), strings.Repeat("02", nonceLength)
		if status, said := ask(one); status != http.StatusOK || said["host"] != named || said["proof"] != proofFor(secret, one, named) {
			t.Errorf("%d %v", status, said)
		}
		if _, said := ask(two); said["proof"] == proofFor(secret, one, named) {
			t.Error("the proof for one nonce is good for another")
		}
		// A nonce must not be able to contain the name of a server. Otherwise the answer to
		// that nonce could be the proof of that server.
		for _, nonce := range []string{"", "01", one + "01", one[2:] + "zz", one + "%0Aevil.localhost:1"} {
			if status, said := ask(nonce); status != http.StatusBadRequest || said["proof"] != "" {
				t.Errorf("nonce %q: %d %v", nonce, status, said)
			}
		}
	})
}
