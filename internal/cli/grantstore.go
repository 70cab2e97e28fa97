package cli

import (
	"encoding/json"
	"path/filepath"

	"github.com/leasehold-go/leasehold"
)

// placedGrant is a grant and where it was made: asked of another store, of the
// same table name, it would seem lost.
type placedGrant struct {
	leasehold.Grant
	at grantPlace
}

// grantPlace is what tells the stores of one table name apart, as far as it is
// known. It is in the grant's JSON.
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

// placed is a grant of this store.
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

// goWhere has the flags name the store of a grant, unless they name another:
// that is refused, as the grant would seem lost there. The environment is set
// aside as by any flag. An endpoint may be given anew: a server moves.
func (a *app) goWhere(g placedGrant) error {
	f := &a.flags
	refuse := func(flag, given, made string) error {
		return usagef("%s %s: the grant is of %s in %s: leave out %[1]s", flag, given, g.Table, made)
	}
	switch {
	case f.table != "" && f.table != g.Table:
		return usagef("the grant is of table %s, not %s", g.Table, f.table)
	case g.at == (grantPlace{}):
		return nil // written by the library, which knows no more than the table
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
