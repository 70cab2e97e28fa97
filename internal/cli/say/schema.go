package say

import _ "embed"

// Schema is the JSON Schema of what --json prints, with the promise of what may change.
//
//go:embed schema.json
var Schema []byte
