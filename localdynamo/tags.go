package localdynamo

import (
	"context"
	"maps"
	"slices"
)

// tagResource implements TagResource.
func (e *Engine) tagResource(ctx context.Context, body string) ([]byte, error) {
	var in struct {
		ResourceArn string
		Tags        []tag
	}
	if err := readInput(body, &in); err != nil {
		return nil, err
	}
	_, err := e.changeTable(ctx, in.ResourceArn, func(tx Tx, t *table) error {
		for _, tag := range in.Tags {
			t.setTag(tag)
		}
		return t.save(tx)
	})
	return nil, err
}

// untagResource implements UntagResource.
func (e *Engine) untagResource(ctx context.Context, body string) ([]byte, error) {
	var in struct {
		ResourceArn string
		TagKeys     []string
	}
	if err := readInput(body, &in); err != nil {
		return nil, err
	}
	_, err := e.changeTable(ctx, in.ResourceArn, func(tx Tx, t *table) error {
		for _, key := range in.TagKeys {
			delete(t.Tags, key)
		}
		return t.save(tx)
	})
	return nil, err
}

// listTagsOfResource implements ListTagsOfResource. It returns all tags in one page.
func (e *Engine) listTagsOfResource(ctx context.Context, body string) ([]byte, error) {
	var in struct{ ResourceArn string }
	if err := readInput(body, &in); err != nil {
		return nil, err
	}
	name := tableName(in.ResourceArn)
	tags := []tag{}
	err := e.view(ctx, func(tx Tx) error {
		t, err := e.namedTable(tx, name)
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(t.Tags)) {
			tags = append(tags, tag{key, t.Tags[key]})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{"Tags": tags}), nil
}
