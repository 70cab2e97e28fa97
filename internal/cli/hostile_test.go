package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// acts is a text that would act on a terminal, change the direction of text, or be
// invisible.
const acts = "\x1b]0;title\a\x1b[2J\u009b2J\u202eevil\u2066\u200f\u061c\u2028\u2029\u200b\ufeff\U000e0041\x7f\r\b\nforged\tcells"

// freeText is the text in the free fields of the benign rows. A field is free if a user or
// a peer can choose its content.
const freeText = "FREE"

// hostileTables has a table of each layout, and rows of each kind to spoil.
type hostileTables struct {
	url     string
	db      *dynamodb.Client
	layouts []layout.Layout
	rows    map[string][]map[string]types.AttributeValue // rows for each name of a layout
	dir     string
	liar    *liar
	alone   bool // true if no other test has processes at this time
}

func newHostileTables(t testing.TB) *hostileTables {
	t.Helper()
	engine := localdynamo.New()
	_, fuzzes := t.(*testing.F) // if t is a fuzz target, no other test runs, because fuzz targets run after all tests
	h := &hostileTables{db: engine.Client(), rows: map[string][]map[string]types.AttributeValue{}, dir: t.TempDir(), liar: &liar{engine: engine}, alone: fuzzes}
	server := httptest.NewServer(h.liar)
	t.Cleanup(func() {
		server.Close()
		_ = engine.Close()
	})
	h.url = server.URL
	for _, name := range layout.Names() {
		l, err := layout.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		h.layouts = append(h.layouts, l)
		h.rows[name] = h.benign(t, l)
	}
	return h
}

// benign returns rows of each kind that a layout has, with freeText in them.
func (h *hostileTables) benign(t testing.TB, l layout.Layout) []map[string]types.AttributeValue {
	t.Helper()
	ctx := context.Background()
	if err := table.Create(ctx, h.db, table.Spec{Name: l.Name(), Layout: l}); err != nil {
		t.Fatal(err)
	}
	can := l.Capabilities()
	client := func(shared bool) *leasehold.Client {
		c, err := leasehold.New(h.db, leasehold.Config{Table: l.Name(), Layout: l, Owner: freeText, SharedLease: shared, Lease: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(ctx) })
		return c
	}
	must := func(lock *leasehold.Lock, err error) *leasehold.Lock {
		if err != nil {
			t.Fatal(err)
		}
		return lock
	}
	c := client(false)
	var opts []leasehold.AcquireOption
	if can.Data {
		opts = append(opts, leasehold.WithData([]byte(freeText)))
	}
	if can.Attributes {
		opts = append(opts, leasehold.WithAttributes(map[string]types.AttributeValue{"note": &types.AttributeValueMemberS{Value: freeText}}))
	}
	must(c.Acquire(ctx, "held", opts...))
	if can.KeepOnRelease {
		must(c.Acquire(ctx, "broken", opts...))
		if r, err := c.Get(ctx, "broken"); err != nil {
			t.Fatal(err)
		} else if err := c.Break(ctx, r, leasehold.BreakOptions{Reason: freeText}); err != nil {
			t.Fatal(err)
		}
	}
	if l.Name() == (layout.Native{}).Name() {
		must(client(true).Acquire(ctx, "shared", opts...))
	}
	out, err := h.db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String(l.Name())})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range out.Items {
		if broken, ok := item["lastBreak"].(*types.AttributeValueMemberM); ok {
			item["lastTakeover"] = &types.AttributeValueMemberM{Value: maps.Clone(broken.Value)}
			item["lastTakeover"].(*types.AttributeValueMemberM).Value["from"] = &types.AttributeValueMemberS{Value: freeText}
		}
	}
	return out.Items
}

// spoilt returns v with text in its free strings. If all is true, all of its strings
// contain text.
func spoilt(v types.AttributeValue, all bool, text string) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		if all || strings.Contains(v.Value, freeText) {
			return &types.AttributeValueMemberS{Value: strings.ReplaceAll(v.Value, freeText, "") + text}
		}
	case *types.AttributeValueMemberB:
		if all || bytes.Contains(v.Value, []byte(freeText)) {
			return &types.AttributeValueMemberB{Value: []byte(text)}
		}
	case *types.AttributeValueMemberN:
		if all {
			return &types.AttributeValueMemberS{Value: text}
		}
	case *types.AttributeValueMemberL:
		out := &types.AttributeValueMemberL{}
		for _, e := range v.Value {
			out.Value = append(out.Value, spoilt(e, all, text))
		}
		return out
	case *types.AttributeValueMemberM:
		out := &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}
		for name, e := range v.Value {
			out.Value[name] = spoilt(e, all, text)
		}
		if all && text != "" {
			out.Value[text] = &types.AttributeValueMemberS{Value: text}
		}
		return out
	}
	return v
}

// spoiltRows returns rows of a layout. First it puts text into the free fields of a row,
// and then into each attribute in turn.
func (h *hostileTables) spoiltRows(l layout.Layout, text string) []map[string]types.AttributeValue {
	names := []string{"key", "lockKey", "lock_key", "lockId", "id"}
	var out []map[string]types.AttributeValue
	for _, row := range h.rows[l.Name()] {
		free := map[string]types.AttributeValue{}
		for name, v := range row {
			free[name] = spoilt(v, false, text)
		}
		out = append(out, free)
		for _, name := range slices.Sorted(maps.Keys(row)) {
			one := maps.Clone(row)
			one[name] = spoilt(row[name], true, text)
			if slices.Contains(names, name) {
				one[name] = &types.AttributeValueMemberS{Value: "k" + text}
			}
			out = append(out, one)
		}
	}
	return out
}

// put replaces the row of a table, and reports whether DynamoDB accepts it.
func (h *hostileTables) put(t testing.TB, table string, row map[string]types.AttributeValue) bool {
	t.Helper()
	ctx := context.Background()
	described, err := h.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String(table)})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range out.Items {
		key := map[string]types.AttributeValue{}
		for _, e := range described.Table.KeySchema {
			key[*e.AttributeName] = item[*e.AttributeName]
		}
		if _, err := h.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = h.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(table), Item: row})
	return err == nil
}

// keyOf returns the partition key of a row.
func (h *hostileTables) keyOf(t testing.TB, table string, row map[string]types.AttributeValue) string {
	t.Helper()
	described, err := h.db.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := row[*described.Table.KeySchema[0].AttributeName].(*types.AttributeValueMemberS)
	return s.Value
}

// main runs a command.
func (h *hostileTables) main(stdout, stderr io.Writer, args ...string) int {
	return h.runs(strings.NewReader("n\n"), stdout, stderr, args)
}

// runs runs a command in this process. There is one exception: leasehold run, while other
// tests run, is started as a process of its own. In this process it would take processes of
// other tests for processes that CMD has left running, and end them.
func (h *hostileTables) runs(stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	vars := map[string]string{"HOME": h.dir, "XDG_STATE_HOME": h.dir, "PATH": os.Getenv("PATH"), "AWS_EC2_METADATA_DISABLED": "true"}
	if args[0] == "run" && !h.alone {
		leasehold, err := installed()
		if err != nil {
			panic(err)
		}
		cmd := exec.Command(leasehold, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
		for name, value := range vars {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		return exitCode(cmd.Run())
	}
	return cli.Main(invocation.Env{
		Args: args, Stdin: stdin, Stdout: stdout, Stderr: stderr, Now: time.Now,
		LookupEnv:  func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
		Executable: os.Executable, OnEC2: func() bool { return false }, OnTrial: func() bool { return false },
	})
}

// looksAt returns the commands that read a row.
func looksAt(key string) [][]string {
	return [][]string{
		{"ls"}, {"ls", "--all"}, {"ls", "--json", "--all"}, {"get", "--", key}, {"get", "--json", "--", key},
		{"break", "--", key}, {"__complete", "get", ""},
	}
}

// watches returns the commands that read a row repeatedly.
func watches(key string) [][]string {
	return [][]string{
		{"ls", "--check=1ms"}, {"ls", "--check=1ms", "--json"}, {"get", "--check=1ms", "--", key},
		{"get", "--check=1ms", "--json", "--", key},
	}
}

// endless returns the commands that end once the server refuses to answer.
func endless(key string) [][]string {
	return [][]string{
		{"elect", "--watch", "--", key}, {"elect", "--watch", "--json", "--", key},
	}
}

// changes returns the commands that would change a row.
func changes(key string) [][]string {
	return [][]string{
		{"acquire", "-n", "-f", "-", "--", key}, {"acquire", "-n", "--json", "-v", "-f", "-", "--", key},
		{"run", "-n", key, "--", "true"}, {"run", "-n", "-v", "--json", key, "--", "true"}, {"run", "-w", "1ms", "-p", "2", key, "--", "true"},
		{"table", "rewrite"}, {"forget", "--yes", "--", key},
		{"break", "--yes", "--json", "--reason", "r", "--", key},
	}
}

// ofGrants returns the commands that read a grant from standard input.
func ofGrants() [][]string {
	return [][]string{{"renew", "-f", "-"}, {"renew", "-v", "--json", "-f", "-"}, {"release", "-f", "-"}, {"release", "-v", "--json", "-f", "-"}}
}

// ofTables returns the commands for whole tables.
func ofTables() [][]string {
	return [][]string{{"table", "check"}, {"table", "check", "--json"}, {"table", "create"}, {"doctor"}, {"doctor", "--json", "-v"}}
}

// onlyShows fails the test if part of a text acts on a terminal, or is invisible there.
func onlyShows(t *testing.T, what string, text []byte) {
	t.Helper()
	bad := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) }
	if !utf8.Valid(text) || bytes.ContainsFunc(text, bad) {
		t.Errorf("%s wrote %q", what, text)
	}
}

// jsonStrings returns all strings in lines of JSON.
func jsonStrings(t *testing.T, what string, lines []byte) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			found[v] = true
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for name, e := range v {
				found[name] = true
				walk(e)
			}
		}
	}
	for d := json.NewDecoder(bytes.NewReader(lines)); ; {
		var v any
		err := d.Decode(&v)
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatalf("%s wrote no JSON: %v: %q", what, err, lines)
		}
		walk(v)
	}
}

// try spoils one row and runs the commands on it.
func (h *hostileTables) try(t *testing.T, l layout.Layout, row map[string]types.AttributeValue, commands func(string) [][]string) {
	t.Helper()
	if !h.put(t, l.Name(), row) {
		return
	}
	key := h.keyOf(t, l.Name(), row)
	for _, args := range commands(key) {
		var stdout, stderr bytes.Buffer
		args = append([]string{args[0], "--table", l.Name(), "--layout", l.Name(), "--region", "local", "--endpoint-url", h.url}, args[1:]...)
		h.main(&stdout, &stderr, args...)
		what := fmt.Sprintf("%s: %q", l.Name(), args)
		onlyShows(t, what, stdout.Bytes())
		onlyShows(t, what, stderr.Bytes())
		if slices.Contains(args, "--json") {
			jsonStrings(t, what, stdout.Bytes())
			jsonStrings(t, what, stderr.Bytes())
		}
	}
}

func TestRecordFieldsCannotControlTerminal(t *testing.T) {
	h := newHostileTables(t)
	for _, l := range h.layouts {
		for _, row := range h.spoiltRows(l, acts) {
			h.try(t, l, row, looksAt)
		}
		for _, row := range h.rows[l.Name()] {
			free := map[string]types.AttributeValue{}
			for name, v := range row {
				free[name] = spoilt(v, false, acts)
			}
			h.try(t, l, free, changes)
		}
	}
}
