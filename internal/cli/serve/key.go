package serve

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// Key is the access key that requests to the engine are signed with. Whoever may connect
// to loopback is any user of the machine.
type Key struct {
	ID, Secret string
	Made       bool // for this server, which has to tell it
}

// KeyIn returns the credentials of the environment, so that programs that have the same
// go on after a restart. Without them it makes a pair that ends with this server.
func KeyIn(get func(string) string) Key {
	if id, secret := get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"); id != "" && secret != "" {
		return Key{ID: id, Secret: secret}
	}
	return Key{ID: rand.Text(), Secret: rand.Text(), Made: true}
}

// Variables are what a program needs, beside the environment, to reach the engine.
func (k Key) Variables(get func(string) string, url string) []string {
	set := []string{"AWS_ENDPOINT_URL_DYNAMODB=" + url}
	if get("AWS_REGION") == "" && get("AWS_DEFAULT_REGION") == "" {
		set = append(set, "AWS_REGION="+store.Placeholder, "AWS_DEFAULT_REGION="+store.Placeholder)
	}
	if k.Made {
		set = append(set, "AWS_ACCESS_KEY_ID="+k.ID, "AWS_SECRET_ACCESS_KEY="+k.Secret)
	}
	return set
}

// Without returns an environment without what would lead a program elsewhere than
// Variables do.
func (k Key) Without(environ []string) []string {
	misleading := store.AWSVariables
	if k.Made { // some SDKs prefer a profile to the variables
		misleading = slices.Concat(misleading, []string{"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"})
	}
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(misleading, name)
	})
}
