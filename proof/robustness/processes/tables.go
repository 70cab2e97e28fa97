//go:build linux

package processes

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
	"github.com/leasehold-go/leasehold/regions"
	"github.com/leasehold-go/leasehold/table"
)

// lockTable contains the locks. Workers write to workTable while they hold a lock.
const (
	lockTable = "locks"
	workTable = "work"
)

// place is the location of the tables: a server, a file, or the Regions of a globalTable.
type place struct {
	Endpoint string
	File     string
	Regions  []site // Regions that the process may use, its home Region first
	Names    string // address of the DNS server that resolves the Regions' endpoints
}

// site is the name of a Region, with the URL of its endpoint.
type site struct{ Name, Endpoint string }

// tables gives access to the tables at a place.
type tables struct {
	db      *dynamodb.Client
	engine  *localdynamo.Engine // engine for a local store file; nil for any other place
	regions *regions.DB         // nil unless the place has several Regions
}

func (p place) open() (*tables, error) {
	if p.File != "" {
		store, err := boltstore.Open(p.File)
		if err != nil {
			return nil, err
		}
		engine := localdynamo.New(localdynamo.WithStore(store))
		return &tables{db: engine.Client(), engine: engine}, nil
	}
	if len(p.Regions) == 0 {
		return &tables{db: client(site{"local", p.Endpoint}, awshttp.NewBuildableClient())}, nil
	}
	var clients []*dynamodb.Client
	for _, s := range p.Regions {
		clients = append(clients, client(s, awshttp.NewBuildableClient().WithDialerOptions(func(d *net.Dialer) { d.Resolver = resolver(p.Names) })))
	}
	t := &tables{db: clients[0]}
	if len(clients) > 1 {
		t.regions = regions.New(clients[0], clients[1:]...)
	}
	return t, nil
}

func client(s site, over *awshttp.BuildableClient) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: &s.Endpoint,
		Region:       s.Name,
		HTTPClient:   over,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

// locks returns the DB that lock clients use.
func (t *tables) locks() leasehold.DB {
	if t.regions != nil {
		return t.regions
	}
	return t.db
}

func (t *tables) close() {
	if t.engine != nil {
		_ = t.engine.Close()
	}
}

// create creates both tables.
func (t *tables) create(ctx context.Context) error {
	for _, name := range []string{lockTable, workTable} {
		if err := table.Create(ctx, t.db, table.Spec{Name: name}); err != nil {
			return err
		}
	}
	return nil
}

// Prefixes of keys in the work table, one for each kind of item.
const (
	countItem   = "count "
	receiptItem = "receipt "
	sumItem     = "sum "
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func numberIn(item map[string]types.AttributeValue, name string) int64 {
	v, ok := item[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func textIn(item map[string]types.AttributeValue, name string) string {
	if v, ok := item[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// keyName is the name of the partition key attribute of both tables.
const keyName = "key"

func itemKey(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{keyName: text(name)}
}

// readCount reads the counter of a key with lock.Read. The result includes all commits of
// earlier holders and of this holder.
func (t *tables) readCount(ctx context.Context, lock *leasehold.Lock, key string) (int64, error) {
	items, err := lock.Read(ctx, []types.TransactGetItem{{Get: &types.Get{TableName: aws.String(workTable), Key: itemKey(countItem + key)}}})
	if err != nil {
		return 0, err
	}
	return numberIn(items[0], "n"), nil
}

// countWrites returns the writes of one commit: the new count, and a receipt for it. The
// writes have no conditions, because Commit adds a guard, which fences them.
func (t *tables) countWrites(key, id string, n, token int64) []types.TransactWriteItem {
	put := func(name string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(workTable), Item: map[string]types.AttributeValue{
			keyName: text(name), "lock": text(key), "write": text(id), "n": number(n), "token": number(token),
		}}}
	}
	return []types.TransactWriteItem{put(countItem + key), put(receiptItem + id)}
}

// putCount sends the writes of countWrites without the guard of a lock, for workers that do
// not fence their writes.
func (t *tables) putCount(ctx context.Context, key, id string, n, token int64) error {
	_, err := t.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: t.countWrites(key, id, n, token)})
	return err
}

// errStale is returned if a counter has rejected a write because the counter has seen a greater
// token.
var errStale = errors.New("a later holder has written")

// add adds one to the counter of a key for a worker. The counter rejects a token below the greatest
// it has seen, unless unchecked is true. There is only one attempt, because a repeated request
// would count twice.
func (t *tables) add(ctx context.Context, key, who string, token int64, unchecked bool) error {
	update := &dynamodb.UpdateItemInput{
		TableName:                aws.String(workTable),
		Key:                      itemKey(sumItem + key),
		UpdateExpression:         aws.String("SET fence = :token, #lock = :lock ADD n :one, #who :one"),
		ExpressionAttributeNames: map[string]string{"#who": sharePrefix + who, "#lock": "lock"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":token": number(token), ":one": number(1), ":lock": text(key),
		},
	}
	if !unchecked {
		update.ConditionExpression = aws.String("attribute_not_exists(fence) OR fence <= :token")
	}
	_, err := t.db.UpdateItem(ctx, update, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	var stale *types.ConditionalCheckFailedException
	if errors.As(err, &stale) {
		return errors.Join(errStale, err)
	}
	return err
}

// sharePrefix is the prefix of attributes in a counter's item. Each of these attributes
// counts the writes of one worker.
const sharePrefix = "by "

// read reads the work table, and returns events that describe its contents.
func (t *tables) read(ctx context.Context) (events []Event, err error) {
	pages := dynamodb.NewScanPaginator(t.db, &dynamodb.ScanInput{TableName: aws.String(workTable), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			name, key := textIn(item, keyName), textIn(item, "lock")
			n, token := numberIn(item, "n"), numberIn(item, "token")
			switch {
			case strings.HasPrefix(name, countItem):
				events = append(events, Event{Kind: Count, Key: key, N: n, Token: token})
			case strings.HasPrefix(name, receiptItem):
				events = append(events, Event{Kind: Receipt, Key: key, Write: textIn(item, "write"), N: n, Token: token})
			case strings.HasPrefix(name, sumItem):
				events = append(events, Event{Kind: Sum, Key: key, N: n, Plain: true})
				for attribute := range item {
					if who, ok := strings.CutPrefix(attribute, sharePrefix); ok {
						events = append(events, Event{Kind: Share, Key: key, Who: who, N: numberIn(item, attribute), Plain: true})
					}
				}
			}
		}
	}
	return events, nil
}
