package lab

import "encoding/json"

// TransactItem is one item of a TransactWriteItems request. All its fields are nil if the item
// is a Put.
type TransactItem struct{ Update, Delete, ConditionCheck *TransactWrite }

// TransactWrite contains the table and the key of an Update, a Delete or a ConditionCheck.
type TransactWrite struct {
	TableName string
	Key       map[string]struct{ S string }
}

// TransactItems decodes the items in the body of a TransactWriteItems request.
func TransactItems(body []byte) []TransactItem {
	var in struct{ TransactItems []TransactItem }
	_ = json.Unmarshal(body, &in)
	return in.TransactItems
}
