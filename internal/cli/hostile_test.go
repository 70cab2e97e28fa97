package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// acts contains escape sequences that would control a terminal, characters that change the
// direction of text, and invisible characters.
const acts = "\x1b]0;title\a\x1b[2J\u009b2J\u202eevil\u2066\u200f\u061c\u2028\u2029\u200b\ufeff\U000e0041\x7f\r\b\nforged\tcells"

// freeText is the content of the free fields in rows without hostile text. A field is free
// if a user or another client of the table can choose the content of the field.
const freeText = "FREE"

// hostileTables is a server with one table for each layout, and some rows without hostile
// text (benign rows). Tests put hostile text into copies of these rows and store the copies.
type hostileTables struct {
	url     string
	db      *dynamodb.Client
	layouts []layout.Layout
	rows    map[string][]map[string]types.AttributeValue // benign rows by layout name
	dir     string
	liar    *liar
	alone   bool // true if no processes of other tests can be running
}

func newHostileTables(t testing.TB) *hostileTables {
	t.Helper()
	engine := localdynamo.New()
	_, fuzzes := t.(*testing.F) // fuzz targets run after all tests, so no other test runs at the same time as a fuzz target
	h := &hostileTables{db: engine.Client(), rows: map[string][]map[string]types.AttributeValue{}, dir: t.TempDir(), liar: &liar{engine: engine}, alone: fuzzes}
	server := httptest.NewServer(h.liar)
	t.Cleanup(func() {
		server.Close()
		_ = engine.Close()
	})
	h.url = server.URL
	for _, name := range layout.Names() {
		l := lab.Must(layout.Parse(name))(t)
		h.layouts = append(h.layouts, l)
		h.rows[name] = h.benign(t, l)
	}
	return h
}

// benign returns one row for each kind of record in the layout. The free fields of the rows
// contain freeText.
func (h *hostileTables) benign(t testing.TB, l layout.Layout) []map[string]types.AttributeValue {
	t.Helper()
	ctx := context.Background()
	lab.OK(t, table.Create(ctx, h.db, table.Spec{Name: l.Name(), Layout: l}))
	can := l.Capabilities()
	client := func(shared bool) *leasehold.Client {
		c := lab.Must(leasehold.New(h.db, leasehold.Config{
			Table: l.Name(), Layout: l, Owner: freeText, SharedLease: shared, Lease: time.Hour, Logger: slog.New(slog.DiscardHandler),
		}))(t)
		t.Cleanup(func() { _ = c.Close(ctx) })
		return c
	}
	c := client(false)
	var opts []leasehold.AcquireOption
	if can.Data {
		opts = append(opts, leasehold.WithData([]byte(freeText)))
	}
	if can.Attributes {
		opts = append(opts, leasehold.WithAttributes(map[string]types.AttributeValue{"note": &types.AttributeValueMemberS{Value: freeText}}))
	}
	lab.Must(c.Acquire(ctx, "held", opts...))(t)
	if can.KeepOnRelease {
		lab.Must(c.Acquire(ctx, "broken", opts...))(t)
		lab.OK(t, c.Break(ctx, lab.Must(c.Get(ctx, "broken"))(t), leasehold.BreakOptions{Reason: freeText}))
	}
	if l.Name() == (layout.Native{}).Name() {
		lab.Must(client(true).Acquire(ctx, "shared", opts...))(t)
	}
	out := lab.Must(h.db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String(l.Name())}))(t)
	// Sort the rows: the position of the session's row in a scan varies, as its key is random.
	slices.SortFunc(out.Items, func(a, b map[string]types.AttributeValue) int {
		return strings.Compare(h.keyOf(t, l.Name(), a), h.keyOf(t, l.Name(), b))
	})
	for _, item := range out.Items {
		if broken, ok := item["lastBreak"].(*types.AttributeValueMemberM); ok {
			item["lastTakeover"] = &types.AttributeValueMemberM{Value: maps.Clone(broken.Value)}
			item["lastTakeover"].(*types.AttributeValueMemberM).Value["from"] = &types.AttributeValueMemberS{Value: freeText}
		}
	}
	return out.Items
}

// spoilt returns a copy of v that contains the hostile text. If "everywhere" is true, all strings,
// binary values, numbers and maps contain it. Otherwise only the strings and binary values that
// contained freeText do.
func spoilt(v types.AttributeValue, everywhere bool, text string) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		if everywhere || strings.Contains(v.Value, freeText) {
			return &types.AttributeValueMemberS{Value: strings.ReplaceAll(v.Value, freeText, "") + text}
		}
	case *types.AttributeValueMemberB:
		if everywhere || bytes.Contains(v.Value, []byte(freeText)) {
			return &types.AttributeValueMemberB{Value: []byte(text)}
		}
	case *types.AttributeValueMemberN:
		if everywhere {
			return &types.AttributeValueMemberS{Value: text}
		}
	case *types.AttributeValueMemberL:
		out := &types.AttributeValueMemberL{}
		for _, e := range v.Value {
			out.Value = append(out.Value, spoilt(e, everywhere, text))
		}
		return out
	case *types.AttributeValueMemberM:
		out := &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}
		for name, e := range v.Value {
			out.Value[name] = spoilt(e, everywhere, text)
		}
		if everywhere && text != "" {
			out.Value[text] = &types.AttributeValueMemberS{Value: text}
		}
		return out
	}
	return v
}

// withFree returns a copy of the row with the given text in place of freeText.
func withFree(row map[string]types.AttributeValue, text string) map[string]types.AttributeValue {
	free := map[string]types.AttributeValue{}
	for name, v := range row {
		free[name] = spoilt(v, false, text)
	}
	return free
}

// spoiltRows returns several hostile rows for each benign row of the layout. In the first
// of these rows, all free fields contain the text. In each of the other rows, a single
// attribute contains the text.
func (h *hostileTables) spoiltRows(l layout.Layout, text string) []map[string]types.AttributeValue {
	names := []string{"key", "lockKey", "lock_key", "lockId", "id"}
	var out []map[string]types.AttributeValue
	for _, row := range h.rows[l.Name()] {
		out = append(out, withFree(row, text))
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

// put deletes all rows of the table, and then stores the given row. It returns false if the
// server rejects the row.
func (h *hostileTables) put(t testing.TB, table string, row map[string]types.AttributeValue) bool {
	t.Helper()
	ctx := context.Background()
	schema := h.keySchema(t, table)
	for _, item := range lab.Must(h.db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String(table)}))(t).Items {
		key := map[string]types.AttributeValue{}
		for _, e := range schema {
			key[*e.AttributeName] = item[*e.AttributeName]
		}
		lab.Must(h.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: key}))(t)
	}
	_, err := h.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(table), Item: row})
	return err == nil
}

// keyOf returns the value of the row's partition key.
func (h *hostileTables) keyOf(t testing.TB, table string, row map[string]types.AttributeValue) string {
	t.Helper()
	s, _ := row[*h.keySchema(t, table)[0].AttributeName].(*types.AttributeValueMemberS)
	return s.Value
}

func (h *hostileTables) keySchema(t testing.TB, table string) []types.KeySchemaElement {
	t.Helper()
	in := &dynamodb.DescribeTableInput{TableName: aws.String(table)}
	return lab.Must(h.db.DescribeTable(context.Background(), in))(t).Table.KeySchema
}

// main calls the method execute with the line "n" as standard input, and returns the exit
// code of the command.
func (h *hostileTables) main(stdout, stderr io.Writer, args ...string) int {
	return h.execute(strings.NewReader("n\n"), stdout, stderr, args)
}

// execute runs a command line in this process, but leasehold run in a new process. In this process,
// leasehold run would kill the children of other tests, as if CMD had left them running. If h.alone
// is true, there are no other tests, and execute runs leasehold run in this process too.
func (h *hostileTables) execute(stdin io.Reader, stdout, stderr io.Writer, args []string) int {
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

// looksAt returns the command lines that read the record of the key once.
func looksAt(key string) [][]string {
	return [][]string{
		{"ls"}, {"ls", "--all"}, {"ls", "--json", "--all"}, {"get", "--", key}, {"get", "--json", "--", key},
		{"break", "--", key}, {"__complete", "get", ""},
	}
}

// watches returns the command lines that read the record of the key repeatedly.
func watches(key string) [][]string {
	return [][]string{
		{"ls", "--check=1ms"}, {"ls", "--check=1ms", "--json"}, {"get", "--check=1ms", "--", key},
		{"get", "--check=1ms", "--json", "--", key},
	}
}

// endless returns command lines that observe a leader until the server returns an error.
func endless(key string) [][]string {
	return [][]string{
		{"elect", "--watch", "--", key}, {"elect", "--watch", "--json", "--", key},
	}
}

// changes returns the command lines that may change the record of the key.
func changes(key string) [][]string {
	return [][]string{
		{"acquire", "-n", "-f", "-", "--", key}, {"acquire", "-n", "--json", "-v", "-f", "-", "--", key},
		{"run", "-n", key, "--", "true"}, {"run", "-n", "-v", "--json", key, "--", "true"}, {"run", "-w", "1ms", "-p", "2", key, "--", "true"},
		{"table", "rewrite"}, {"forget", "--yes", "--", key},
		{"break", "--yes", "--json", "--reason", "r", "--", key},
	}
}

// ofGrants returns the command lines that read a grant from standard input.
func ofGrants() [][]string {
	return [][]string{{"renew", "-f", "-"}, {"renew", "-v", "--json", "-f", "-"}, {"release", "-f", "-"}, {"release", "-v", "--json", "-f", "-"}}
}

// ofTables returns the command lines that concern a whole table.
func ofTables() [][]string {
	return [][]string{{"table", "check"}, {"table", "check", "--json"}, {"table", "create"}, {"doctor"}, {"doctor", "--json", "-v"}}
}

// onlyShows fails the test if the text contains characters that control a terminal, or
// characters that a terminal does not show.
func onlyShows(t *testing.T, what string, text []byte) {
	t.Helper()
	bad := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) }
	if !utf8.Valid(text) || bytes.ContainsFunc(text, bad) {
		t.Errorf("%s wrote %q", what, text)
	}
}

// isJSON fails the test unless the lines contain only JSON values.
func isJSON(t *testing.T, what string, lines []byte) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(lines)); ; {
		var v any
		switch err := d.Decode(&v); {
		case err == io.EOF:
			return
		case err != nil:
			t.Fatalf("%s wrote no JSON: %v: %q", what, err, lines)
		}
	}
}

// onTable returns args with added flags that select the table in the given layout.
func (h *hostileTables) onTable(l layout.Layout, args []string) []string {
	return append([]string{args[0], "--table", l.Name(), "--layout", l.Name(), "--region", "local", "--endpoint-url", h.url}, args[1:]...)
}

// shownOf runs a command line on the table in the given layout, and returns its output.
func (h *hostileTables) shownOf(l layout.Layout, args []string) (stdout, stderr string) {
	var out, errs bytes.Buffer
	h.main(&out, &errs, h.onTable(l, args)...)
	return out.String(), errs.String()
}
