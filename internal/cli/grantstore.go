package cli

import (
	"encoding/json"
	"path/filepath"

	"github.com/leasehold-go/leasehold"
)

// placedGrant is a grant and the place of its table. In another place, a table
// of the same name would show the grant as lost.
type placedGrant struct {
	leasehold.Grant
	at grantPlace
}

// grantPlace distinguishes tables of the same name. It is part of the grant's
// JSON. Unknown fields are empty.
type grantPlace struct {
	File        string `json:"file,omitempty"`
	Region      string `json:"region,omitempty"`
	EndpointURL string `json:"endpointUrl,omitempty"`
}

func (g placedGrant) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(g.Grant)
	if err != nil || g.at == (grantPlace{}) {
		return b, err
	}
	at, err := json.Marshal(g.at)
	if err != nil {
		return nil, err
	}
	return append(append(b[:len(b)-1], ','), at[1:]...), nil
}

func (g *placedGrant) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &g.Grant); err != nil {
		return err
	}
	return json.Unmarshal(b, &g.at)
}

// placed adds this store's place to a grant.
func (s *store) placed(g leasehold.Grant) placedGrant {
	if s.file != "" {
		return placedGrant{g, grantPlace{File: s.file}}
	}
	o := s.db.Options()
	at := grantPlace{Region: o.Region}
	if o.BaseEndpoint != nil {
		at.EndpointURL = *o.BaseEndpoint
	}
	return placedGrant{g, at}
}

// useStoreOf sets the flags to the table of a grant; like all flags, they
// override the environment. Flags that name another table are refused, because
// the grant would seem lost there. Only --endpoint-url may differ, as a server
// can move.
func (a *app) useStoreOf(g placedGrant) error {
	f := &a.flags
	refuse := func(flag, given, made string) error {
		return usagef("%s %s: the grant is from table %s in %s: leave out %[1]s", flag, given, g.Table, made)
	}
	switch {
	case f.table != "" && f.table != g.Table:
		return usagef("the grant is from table %s, not %s", g.Table, f.table)
	case g.at == (grantPlace{}):
		return nil // written by the library, which names only the table
	case g.at.File != "":
		if f.file != "" {
			if abs, err := filepath.Abs(f.file); err != nil || abs != g.at.File {
				return refuse("--file", f.file, g.at.File)
			}
		}
		f.table, f.file = g.Table, g.at.File
		return nil
	case f.file != "":
		return refuse("--file", f.file, "DynamoDB")
	case f.region != "" && f.region != g.at.Region:
		return refuse("--region", f.region, g.at.Region)
	}
	f.table, f.region = g.Table, g.at.Region
	if f.endpoint == "" {
		f.endpoint = g.at.EndpointURL
	}
	return nil
}
