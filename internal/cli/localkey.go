package cli

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// localKey is the access key that requests to leasehold local are signed with. Whoever
// may connect to loopback is any user of the machine.
type localKey struct {
	id, secret string
	made       bool // for this server, which has to tell it
}

// localKey returns the credentials of the environment, so that programs that have the
// same go on after a restart. Without them it makes a pair that ends with this server.
func (a *app) localKey() localKey {
	if id, secret := a.get("AWS_ACCESS_KEY_ID"), a.get("AWS_SECRET_ACCESS_KEY"); id != "" && secret != "" {
		return localKey{id: id, secret: secret}
	}
	return localKey{id: rand.Text(), secret: rand.Text(), made: true}
}

// localVariables are what a program needs to reach the engine.
func (a *app) localVariables(url string, key localKey) []string {
	set := []string{"AWS_ENDPOINT_URL_DYNAMODB=" + url}
	if a.get("AWS_REGION") == "" && a.get("AWS_DEFAULT_REGION") == "" {
		set = append(set, "AWS_REGION="+store.Placeholder, "AWS_DEFAULT_REGION="+store.Placeholder)
	}
	if key.made {
		set = append(set, "AWS_ACCESS_KEY_ID="+key.id, "AWS_SECRET_ACCESS_KEY="+key.secret)
	}
	return set
}

// localEnv returns the environment of a CMD that uses the engine.
func (a *app) localEnv(url string, key localKey) []string {
	replaced := slices.Concat(store.AWSVariables, []string{"AWS_ENDPOINT_URL_DYNAMODB"})
	if key.made { // some SDKs prefer a profile to the variables
		replaced = append(replaced, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE")
	}
	var env []string
	for _, kv := range a.Environ {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(replaced, name) {
			env = append(env, kv)
		}
	}
	return append(env, a.localVariables(url, key)...)
}

// sayLocal writes the URL that is served, and the key if it was made.
func (a *app) sayLocal(url, where string, key localKey) error {
	asJSON := map[string]string{"endpointUrl": url}
	if key.made {
		asJSON["accessKeyId"], asJSON["secretAccessKey"] = key.id, key.secret
	}
	const words = "serving the DynamoDB API on %s, tables are %s; press Ctrl-C to stop\n"
	if err := a.sayURL(url, asJSON, words, url, where); err != nil || !key.made || a.flags.json {
		return err
	}
	_, err := fmt.Fprintf(a.Stdout, "export %s\n", strings.Join(a.localVariables(url, key), " "))
	return err
}
