package adapters

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/byname"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/locktest"
)

// authority is a certificate authority that counts the certificates requested from it. The
// tests expect one request, however many certmagic processes there are.
type authority struct {
	t      *testing.T
	asked  atomic.Int32
	begins func(ctx context.Context, attempt int32) error // called before each certificate is issued
}

func (*authority) IssuerKey() string { return "authority" }

func (a *authority) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if err := a.begins(ctx, a.asked.Add(1)); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signer := &x509.Certificate{SerialNumber: big.NewInt(1)}
	signed := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: csr.DNSNames, NotBefore: time.Now(), NotAfter: time.Now().AddDate(0, 3, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, signed, signer, csr.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// server simulates a server process that obtains certificates with certmagic. It returns the
// configuration and the Locker of this process. All servers store their certificates in dir.
func server(t *testing.T, env *locktest.Env, dir string, a *authority) (*certmagic.Config, *byname.Locker) {
	t.Helper()
	names := namesOf(t, env, leasehold.Config{}, "certificates/")
	var cfg *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return cfg, nil }, Logger: zap.NewNop(),
	})
	t.Cleanup(cache.Stop)
	cfg = certmagic.New(cache, certmagic.Config{
		Storage: Storage{&certmagic.FileStorage{Path: dir}, names}, Issuers: []certmagic.Issuer{a}, Logger: zap.NewNop(),
	})
	return cfg, names
}

func TestSeveralCertmagicServersObtainOnlyOneCertificate(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		a := &authority{t: t, begins: func(context.Context, int32) error {
			time.Sleep(3 * time.Minute) // much longer than a lease
			return nil
		}}
		dir := t.TempDir()
		done := make(chan error)
		for range 3 {
			cfg, _ := server(t, env, dir, a)
			go func() { done <- cfg.ObtainCertSync(t.Context(), "example.com") }()
		}
		for range 3 {
			lab.OK(t, <-done)
		}
		lab.Want(t, "certificates", a.asked.Load(), 1)
	})
}

func TestCertmagicRequestsNoCertificateAfterLockIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		a := &authority{t: t}
		cfg, names := server(t, env, t.TempDir(), a)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a.begins = func(context.Context, int32) error {
			env.Steal("certificates/issue_cert_example.com")
			return errors.New("try again")
		}
		done := make(chan error, 1)
		go func() { done <- cfg.ObtainCertAsync(ctx, "example.com") }()
		lab.Elapse(time.Hour) // certmagic repeats its attempt within this hour
		cancel()
		lab.WantFailed(t, "a certificate without certmagic's lock", <-done)
		lab.Want(t, "requests to the authority", a.asked.Load(), 1)
		_, held := names.Held("issue_cert_example.com")
		lab.Want(t, "lock is held after certmagic's Unlock", held, false)
	})
}

func TestCertmagicCleanUpReleasesHeldLock(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		a := &authority{t: t}
		cfg, names := server(t, env, t.TempDir(), a)
		a.begins = func(ctx context.Context, _ int32) error {
			certmagic.CleanUpOwnLocks(ctx, zap.NewNop())
			_, held := names.Held("issue_cert_example.com")
			lab.Want(t, "lock is held after CleanUpOwnLocks", held, false)
			return errors.New("the process is ending")
		}
		lab.WantText(t, "ObtainCertSync", cfg.ObtainCertSync(t.Context(), "example.com"), "the process is ending")
	})
}
