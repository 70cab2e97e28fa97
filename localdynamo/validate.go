package localdynamo

import (
	"strings"
)

// missing returns the error for a request that lacks a required member.
func missing(member string) error {
	return invalidf("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", member)
}

// notOneOf returns the error for a member whose value is not in the member's enumeration.
func notOneOf(member, given, all string) error {
	return invalidf("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must satisfy enum value set: %s", given, member, all)
}

// check makes those checks of a request that are the same for every operation on items.
func (req *request) check() error {
	if len(req.legacy) > 0 {
		return invalidf("localdynamo does not support the legacy parameters {%s}: use expressions", strings.Join(req.legacy, ", "))
	}
	if err := checkTableName(req.table); err != nil {
		return err
	}
	if c := req.capacity; c != "" && c != "NONE" && c != "TOTAL" && c != "INDEXES" {
		return notOneOf("returnConsumedCapacity", c, "[INDEXES, TOTAL, NONE]")
	}
	if c := req.returnsOld; c != "" && c != "NONE" && c != "ALL_OLD" {
		return notOneOf("returnValuesOnConditionCheckFailure", c, "[ALL_OLD, NONE]")
	}
	return nil
}

// checkTableName returns an error if a table's name is invalid.
func checkTableName(name string) error {
	switch {
	case name == "":
		return missing("tableName")
	case len(name) < 3:
		return invalidf("1 validation error detected: Value '%s' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3", name)
	case len(name) > 255:
		return invalidf("1 validation error detected: Value '%s' at 'tableName' failed to satisfy constraint: Member must have length less than or equal to 255", name)
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return invalidf("1 validation error detected: Value '%s' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+", name)
		}
	}
	return nil
}
