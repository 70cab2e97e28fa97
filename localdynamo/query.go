package localdynamo

import (
	"context"
	"time"
)

// startAfter converts a request's ExclusiveStartKey to a Store key. The requested page begins
// after this key.
func (t *table) startAfter(key item) ([]byte, error) {
	place, err := t.key(key)
	if err != nil {
		return nil, invalid("The provided starting key is invalid: " + err.(*apiError).message)
	}
	return place, nil
}

// query implements Query.
func (e *Engine) query(ctx context.Context, req *request) ([]byte, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	s := newScope(req)
	if err := s.checkGiven(req.keyCondition.given || req.filter.given || req.projection.given, "FilterExpression and KeyConditionExpression are null"); err != nil {
		return nil, err
	}
	p, err := e.newPage(req, s)
	if err != nil {
		return nil, err
	}
	if !req.keyCondition.given {
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	terms, err := e.keyTerms(req.keyCondition.value, s)
	if err != nil {
		return nil, err
	}
	if err := s.checkUsed(); err != nil {
		return nil, err
	}
	p.backward = req.forward.given && !req.forward.value
	err = e.view(ctx, func(tx Tx) error {
		t, err := e.table(tx, req.table)
		if err != nil {
			return err
		}
		from, to, err := t.querySpan(req, terms, p)
		if err != nil {
			return err
		}
		return p.read(tx, t, from, to, time.Now())
	})
	if err != nil {
		return nil, err
	}
	return p.reply(req), nil
}

// querySpan returns the range of Store keys that one page of a Query reads.
func (t *table) querySpan(req *request, terms []keyTerm, p *page) (from, to []byte, err error) {
	condition, err := t.keyCondition(terms)
	if err != nil {
		return nil, nil, err
	}
	if name := p.filter.keyAttribute(t); name != "" {
		return nil, nil, invalidf("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
	}
	from, to = t.span(condition)
	if !req.start.given {
		return from, to, nil
	}
	start, err := t.startAfter(req.start.value)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !req.start.value.get(t.Hash.Name).equal(condition.hash):
		return nil, nil, invalid("The provided starting key is outside query boundaries based on provided conditions")
	case !within(start, from, to):
		return nil, nil, invalid("The provided starting key does not match the range key predicate")
	}
	if p.backward {
		return from, start, nil
	}
	return append(start, 0), to, nil
}
