//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/proof/interop/engines"
	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

// golden is the content of a golden file. It describes requests to a peer (another lock
// library), and contains the items that the peer left in the table.
type golden struct {
	Peer     string `json:"peer"`
	Version  string `json:"version"`
	Recorded bool   `json:"recorded"` // true if this command wrote the file; false if a person wrote it
	Case     string `json:"case"`

	// The following fields describe the lock that the recorded requests should leave behind.
	State   string `json:"state"` // state of the lock at the end: held, released or absent
	Owner   string `json:"owner,omitempty"`
	LeaseMS int64  `json:"leaseMs"`
	SortKey string `json:"sortKey,omitempty"` // name of the sort key attribute if it is not the peer's default

	Items []any `json:"items"` // items in DynamoDB JSON
}

// kase describes a golden file that this command records.
type kase struct {
	peer     peers.Peer
	name     string
	what     string
	settings peers.Settings
	state    string

	ours      []peers.Request // requests that leasehold executes in the native layout, before the peer starts
	steps     []peers.Request // requests to the peer; a request other than acquire concerns the lock that was acquired last
	heartbeat bool            // true to wait, after the steps, until the peer has renewed the lock in the background
}

// record executes the requests of the case on a new table, and returns the content of the
// golden file.
func (c kase) record(ctx context.Context, server *engines.Server) (golden, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := c.peer.CreateTable(ctx, server, c.settings); err != nil {
		return golden{}, err
	}
	native := c.settings
	native.Owner, native.Lease = "ours", time.Second
	if err := play(ctx, server, peers.Ours("native"), native, c.ours, false); err != nil {
		return golden{}, err
	}
	if err := play(ctx, server, c.peer, c.settings, c.steps, c.heartbeat); err != nil {
		return golden{}, err
	}
	found, err := items(ctx, server, c.settings.Table)
	if err != nil {
		return golden{}, err
	}
	g := golden{
		Peer: c.peer.Name, Version: c.peer.Version, Recorded: true, Case: c.what,
		State: c.state, Owner: c.settings.Owner, LeaseMS: c.settings.Lease.Milliseconds(),
		SortKey: c.settings.SortKey, Items: []any{},
	}
	for _, s := range c.steps {
		if s.Lease != 0 {
			g.LeaseMS = s.Lease.Milliseconds()
		}
	}
	for _, item := range found {
		b, err := attributevalue.MarshalMapJSON(item)
		if err != nil {
			return golden{}, err
		}
		var sorted any // decoding and encoding the JSON again sorts the attributes by name
		if err := json.Unmarshal(b, &sorted); err != nil {
			return golden{}, err
		}
		g.Items = append(g.Items, sorted)
	}
	return g, nil
}

// play starts a driver process for the peer, sends it the given requests, and kills the process. If
// heartbeat is true, play delays the kill until the peer has renewed its lock by itself.
func play(ctx context.Context, server *engines.Server, p peers.Peer, s peers.Settings, steps []peers.Request, heartbeat bool) (err error) {
	if len(steps) == 0 {
		return nil
	}
	d, err := peers.Start(ctx, p, server.Endpoint, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Kill()) }()
	var lock int64
	for _, r := range steps {
		if r.Do != "acquire" {
			r.Lock = lock
		}
		reply, err := d.Do(ctx, r)
		if err != nil {
			return err
		}
		if r.Do == "acquire" {
			lock = reply.ID
		}
	}
	if heartbeat {
		return awaitHeartbeat(ctx, server, s.Table)
	}
	return nil
}

// awaitHeartbeat waits until a background renewal of the peer has changed the only item in
// the table.
func awaitHeartbeat(ctx context.Context, server *engines.Server, table string) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	var before string
	for {
		found, err := items(ctx, server, table)
		if err != nil {
			return err
		}
		now, err := attributevalue.MarshalMapJSON(found[0])
		switch {
		case err != nil:
			return err
		case before != "" && before != string(now):
			return nil
		}
		before = string(now)
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for a heartbeat: %w", context.Cause(ctx))
		}
	}
}

func items(ctx context.Context, server *engines.Server, table string) ([]map[string]types.AttributeValue, error) {
	out, err := server.Client().Scan(ctx, &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}
