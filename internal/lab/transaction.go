package lab

import "encoding/json"

// TransactItem is an item of a transaction in flight.
type TransactItem struct{ Update, Delete, ConditionCheck *TransactWrite }

// TransactWrite is a write of a transaction, or a check.
type TransactWrite struct {
	TableName string
	Key       map[string]struct{ S string }
}

// TransactItems reads the body of a TransactWriteItems.
func TransactItems(body []byte) []TransactItem {
	var in struct{ TransactItems []TransactItem }
	_ = json.Unmarshal(body, &in)
	return in.TransactItems
}
