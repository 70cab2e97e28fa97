package leasehold

import "github.com/leasehold-go/leasehold/internal/recipe"

func init() { recipe.Of = func(client any) recipe.Client { return inner{client.(*Client)} } }

// inner is a client as the recipes see it.
type inner struct{ c *Client }

// Chance is for recipes that choose or pause at random.
func (i inner) Chance() float64 { return i.c.chance() }
