package localdynamo

import (
	"strings"

	"github.com/leasehold-go/leasehold/localdynamo/expr"
)

// option is an optional member of a request.
type option[T any] struct {
	value T
	given bool
}

func some[T any](v T) option[T] { return option[T]{v, true} }

// request contains the members of a request. All operations on items use this type, and each uses
// only its own members. The engine ignores unknown members, as DynamoDB does.
type request struct {
	table        string
	key          option[item]
	item         option[item]
	start        option[item]
	keys         []item // member Keys of a BatchGetItem
	tables       []tableRequest
	actions      []action       // member TransactItems of a transaction, or the writes of a batch to one table
	token        option[string] // member ClientRequestToken
	condition    option[string]
	update       option[string]
	keyCondition option[string]
	filter       option[string]
	projection   option[string]
	names        option[[]nameBinding]
	values       option[[]valueBinding]
	consistent   bool
	forward      option[bool]
	limit        option[int]
	segment      option[int]
	segments     option[int]
	index        string
	selects      string
	returns      string // member ReturnValues
	returnsOld   string // member ReturnValuesOnConditionCheckFailure
	capacity     string // member ReturnConsumedCapacity
	legacy       []string
}

// tableRequest is the part of a batch that concerns one table.
type tableRequest struct {
	table   string
	request request
}

// action is one element of TransactItems, or one write in a batch.
type action struct {
	// Names of the members that the element has, such as Put. A valid element has exactly one.
	kinds   []string
	request request
}

// readRequest decodes the body of a request for an operation on items.
func readRequest(body string) (*request, error) {
	req := &request{}
	if err := readJSON(body, func(r *reader) { r.object(func(name string) { req.part(r, name) }) }); err != nil {
		return nil, err
	}
	return req, nil
}

// maxParts is the maximum number of actions, and of tables, that the reader keeps from one request.
// Each takes hundreds of bytes of memory. The maximum is one more than the 100 that DynamoDB
// allows, so that the engine later refuses a longer request.
const maxParts = 101

// part decodes a top-level member of the body. TransactItems and RequestItems exist only at the top
// level, because they contain other requests. The method request.member decodes the members that
// can also be in those other requests.
func (req *request) part(r *reader, name string) {
	switch name {
	case "TransactItems":
		req.actions = r.actions()
	case "RequestItems":
		r.object(func(table string) {
			if len(req.tables) == maxParts {
				r.skip(0)
				return
			}
			req.tables = append(req.tables, r.tableRequest(table))
		})
	default:
		req.member(r, name)
	}
}

func (req *request) member(r *reader, name string) {
	switch name {
	case "TableName":
		req.table = tableName(r.string())
	case "Key":
		req.key = some(r.item(1))
	case "Item":
		req.item = some(r.item(1))
	case "ExclusiveStartKey":
		req.start = some(r.item(1))
	case "ConditionExpression":
		req.condition = some(r.string())
	case "UpdateExpression":
		req.update = some(r.string())
	case "KeyConditionExpression":
		req.keyCondition = some(r.string())
	case "FilterExpression":
		req.filter = some(r.string())
	case "ProjectionExpression":
		req.projection = some(r.string())
	case "ExpressionAttributeNames":
		req.names = some(r.names())
	case "ExpressionAttributeValues":
		req.values = some(r.bindings())
	case "ConsistentRead":
		req.consistent = r.bool()
	case "ScanIndexForward":
		req.forward = some(r.bool())
	case "Limit":
		req.limit = some(r.int())
	case "Segment":
		req.segment = some(r.int())
	case "TotalSegments":
		req.segments = some(r.int())
	case "IndexName":
		req.index = r.string()
	case "Select":
		req.selects = r.string()
	case "ReturnValues":
		req.returns = r.string()
	case "ReturnValuesOnConditionCheckFailure":
		req.returnsOld = r.string()
	case "ReturnConsumedCapacity":
		req.capacity = r.string()
	case "ClientRequestToken":
		req.token = some(r.string())
	case "Keys":
		r.array(func() { req.keys = append(req.keys, r.item(1)) })
	case "Expected", "AttributeUpdates", "AttributesToGet", "KeyConditions", "QueryFilter", "ScanFilter", "ConditionalOperator":
		req.legacy = append(req.legacy, name)
		r.skip(0)
	default:
		r.skip(0)
	}
}

// tableName returns the name of a table. s is the name itself or the table's ARN.
func tableName(s string) string {
	if arn, name, ok := strings.Cut(s, ":table/"); ok && strings.HasPrefix(arn, "arn:") {
		return name
	}
	return s
}

func (r *reader) names() []nameBinding {
	names := []nameBinding{}
	r.object(func(placeholder string) {
		name := r.string()
		switch {
		case !expr.IsPlaceholder(placeholder, '#'):
			r.refuse(invalidf("ExpressionAttributeNames contains invalid key: Syntax error; key: \"%s\"", placeholder))
		case name == "":
			r.refuse(invalidf("ExpressionAttributeNames contains invalid value: Empty attribute name for key %s", placeholder))
		}
		names = append(names, nameBinding{placeholder: placeholder, name: name})
	})
	return names
}

func (r *reader) bindings() []valueBinding {
	values := []valueBinding{}
	r.object(func(placeholder string) {
		before := r.refused
		r.refused = nil
		v := r.value(1)
		if refused := r.refused; refused != nil {
			r.refused = invalidf("ExpressionAttributeValues contains invalid value: %s for key %s", refused.message, placeholder)
		}
		if before != nil {
			r.refused = before
		}
		if !expr.IsPlaceholder(placeholder, ':') {
			r.refuse(invalidf("ExpressionAttributeValues contains invalid key: Syntax error; key: \"%s\"", placeholder))
		}
		if v.kind != kindNone { // the reader returns kindNone for a value that it refuses
			values = append(values, valueBinding{placeholder: placeholder, value: v})
		}
	})
	return values
}

// actions decodes TransactItems, or the list of a batch's writes to one table.
func (r *reader) actions() []action {
	var all []action
	r.array(func() {
		if len(all) == maxParts {
			r.skip(0)
			return
		}
		all = append(all, r.action())
	})
	return all
}

func (r *reader) action() action {
	var a action
	r.object(func(kind string) {
		a.kinds = append(a.kinds, kind)
		r.object(func(name string) { a.request.member(r, name) })
	})
	return a
}

// tableRequest decodes the part of RequestItems for one table. In a BatchGetItem the part is an
// object, and in a BatchWriteItem it is a list of writes.
func (r *reader) tableRequest(table string) tableRequest {
	t := tableRequest{table: tableName(table)}
	if r.peek() == '[' {
		t.request.actions = r.actions()
	} else {
		r.object(func(name string) { t.request.member(r, name) })
	}
	return t
}
