package cli

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/say"
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
	raw, err := say.Item(item)
	if err != nil {
		return err
	}
	if a.Stdout.Terminal && !a.flags.json {
		raw = say.Indented(raw)
	}
	_, err = fmt.Fprintln(a.Stdout, string(raw))
	return err
}
