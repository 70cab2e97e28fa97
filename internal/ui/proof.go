package ui

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// nonceLength is the length, in bytes, of the nonce that a page sends to request a proof.
const nonceLength = 32

// whoPath is the route on which a server proves to a page that it has the secret.
const whoPath = "/who"

// NewSecret returns a random secret that consists of 52 letters and digits.
func NewSecret() string { return rand.Text() + rand.Text() }

// NewName returns a random host name that ends in .localhost. Browsers resolve it to this
// machine.
func NewName() string { return strings.ToLower(rand.Text()) + ".localhost" }

// tokenFor returns the token for the server with the given secret and host. The token gives no
// access to other servers.
func tokenFor(secret, host string) string { return sign(secret, "page", host) }

// proofFor returns the proof that the server at host has the secret. The page chooses the
// nonce, so an earlier proof cannot be replayed.
func proofFor(secret, nonce, host string) string { return sign(secret, "server", nonce, host) }

// sign returns the HMAC of the words. Each word is one line of the signed text, so a word must
// not contain a newline.
func sign(secret string, words ...string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(strings.Join(words, "\n")))
	return hex.EncodeToString(mac.Sum(nil))
}

// The method "who" serves the route whoPath, which needs no token. Its response contains the
// server's name, and proves that the server has the secret.
func (s *Server) who(w http.ResponseWriter, r *http.Request) {
	nonce := r.URL.Query().Get("nonce")
	if b, err := hex.DecodeString(nonce); err != nil || len(b) != nonceLength {
		answer(w, http.StatusBadRequest, outcome{Outcome: "refused", Message: "The request has no nonce."})
		return
	}
	answer(w, http.StatusOK, struct {
		Host  string `json:"host"`
		Proof string `json:"proof"`
	}{s.cfg.Name, proofFor(s.cfg.Secret, nonce, s.cfg.Name)})
}
