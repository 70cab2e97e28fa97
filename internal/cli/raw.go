package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
)

// rawItem reads what is stored under a key, whatever it is.
func rawItem(ctx context.Context, s *store.Store, key leasehold.Key) (protocol.Item, error) {
	proto, err := records.Of(s.Layout)
	if err != nil {
		return nil, err
	}
	k, err := proto.Key(protocol.Key(key))
	if err != nil {
		return nil, misuse.Errorf("%s: %v", wording.Key(key), err)
	}
	out, err := s.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.Table), Key: k, ConsistentRead: aws.Bool(true)})
	switch {
	case err != nil:
		return nil, cause(ctx, err)
	case len(out.Item) == 0:
		return nil, notFound(s, key)
	}
	return out.Item, nil
}

func notFound(s *store.Store, key leasehold.Key) error {
	return fmt.Errorf("%w: %s in %s", leasehold.ErrNotFound, wording.Key(key), s.Called())
}

// getRaw prints what is stored under a key.
func (a *app) getRaw(ctx context.Context, s *store.Store, key leasehold.Key) error {
	item, err := rawItem(ctx, s, key)
	if err != nil {
		return err
	}
	raw, err := rawJSON(item)
	if err != nil {
		return err
	}
	if a.Stdout.Terminal && !a.flags.json {
		raw = indented(raw)
	}
	_, err = fmt.Fprintln(a.Stdout, string(raw))
	return err
}

// rawJSON is an item as DynamoDB JSON: on one line, its attributes in order.
func rawJSON(item protocol.Item) ([]byte, error) {
	record, err := json.Marshal(leasehold.Record{Attributes: item})
	if err != nil {
		return nil, err
	}
	var raw struct {
		Attributes json.RawMessage `json:"attributes"`
	}
	err = json.Unmarshal(record, &raw)
	return raw.Attributes, err
}

func indented(raw []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return b.Bytes()
}

// sameRaw reports whether two pieces of DynamoDB JSON show the same item. The
// members of a set have no order.
func sameRaw(a, b []byte) bool {
	x, y := ordered(a), ordered(b)
	return x != nil && bytes.Equal(x, y)
}

// ordered writes JSON in one form. nil: it is none.
func ordered(raw []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a float64 would make two long numbers one
	if !json.Valid(raw) || d.Decode(&v) != nil {
		return nil
	}
	orderSets(v)
	out, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return out
}

func orderSets(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			orderSets(e)
		}
	case map[string]any:
		for name, e := range v {
			orderSets(e)
			if members, ok := e.([]any); ok && slices.Contains([]string{"SS", "NS", "BS"}, name) {
				slices.SortFunc(members, func(a, b any) int { return bytes.Compare(fmt.Append(nil, a), fmt.Append(nil, b)) })
			}
		}
	}
}
