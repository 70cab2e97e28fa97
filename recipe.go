package leasehold

import "github.com/leasehold-go/leasehold/internal/recipe"

func init() { recipe.Of = func(client any) recipe.Client { return inner{client.(*Client)} } }

// inner is a client as the recipes see it.
type inner struct{ c *Client }
