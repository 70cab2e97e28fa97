package localdynamo

import (
	"cmp"
	"slices"

	"github.com/leasehold-go/leasehold/localdynamo/expr"
)

// update is a parsed update expression, with the values of the placeholders in it.
type update struct {
	tree  *expr.Update
	scope *scope
	// Paths that the update writes. Placeholders in them have been replaced by names.
	targets []expr.Path
}

var (
	errUpdatePath    = invalid("The document path provided in the update expression is invalid for update")
	errUpdateMissing = invalid("The provided expression refers to an attribute that does not exist in the item")
	errUpdateOperand = invalid("An operand in the update expression has an incorrect data type")
)

// update parses and checks an update expression. If the request has no update expression, it
// returns an update that changes nothing.
func (e *Engine) update(source option[string], s *scope) (*update, error) {
	if !source.given {
		return &update{tree: &expr.Update{}, scope: s}, nil
	}
	tree, err := e.updates.get(source.value)
	if err != nil {
		return nil, refusal("UpdateExpression", err)
	}
	u := &update{tree: tree, scope: s}
	if err := u.check(); err != nil {
		return nil, refusal("UpdateExpression", err)
	}
	return u, nil
}

// check returns the first error that can be found in the update without the item.
func (u *update) check() error {
	for _, assignment := range u.tree.Set {
		if _, err := u.checkTerm(assignment.Value); err != nil {
			return err
		}
	}
	for _, target := range u.tree.Targets() {
		path, err := u.scope.usePath(target)
		if err != nil {
			return err
		}
		u.targets = append(u.targets, path)
	}
	if err := expr.CheckOverlap(u.targets); err != nil {
		return err
	}
	for _, add := range u.tree.Add {
		v, err := u.scope.useValue(add.Value)
		if err != nil {
			return err
		}
		if v.kind != kindN && !v.kind.isSet() {
			return wrongSection("ADD", v.kind)
		}
	}
	for _, del := range u.tree.Delete {
		v, err := u.scope.useValue(del.Value)
		if err != nil {
			return err
		}
		if !v.kind.isSet() {
			return wrongSection("DELETE", v.kind)
		}
	}
	return nil
}

func wrongSection(section string, k kind) error {
	return &expr.Error{Reason: "Incorrect operand type for operator or function; operator: " + section +
		", operand type: " + longNames[k] + ", typeSet: ALLOWED_FOR_" + section + "_OPERAND"}
}

// checkTerm checks a term, and returns the kind of the term's value. It returns kindNone if the
// kind depends on the item.
func (u *update) checkTerm(term expr.Term) (kind, error) {
	switch t := term.(type) {
	case expr.Path:
		_, err := u.scope.usePath(t)
		return kindNone, err
	case expr.Placeholder:
		v, err := u.scope.useValue(t)
		return v.kind, err
	case expr.Sum:
		return kindN, u.checkOperands(t.Op, kindN, t.Left, t.Right)
	case expr.ListAppend:
		return kindL, u.checkOperands("list_append", kindL, t.First, t.Second)
	case expr.IfNotExists:
		if _, err := u.scope.usePath(t.Path); err != nil {
			return kindNone, err
		}
		_, err := u.checkTerm(t.Default)
		return kindNone, err
	}
	panic("localdynamo: an unknown term")
}

func (u *update) checkOperands(operator string, want kind, operands ...expr.Term) error {
	for _, operand := range operands {
		k, err := u.checkTerm(operand)
		if err != nil {
			return err
		}
		if k != kindNone && k != want {
			return wrongOperand(operator, k)
		}
	}
	return nil
}

// checkKey returns an error if the update writes a key attribute of the table.
func (u *update) checkKey(t *table) error {
	for _, target := range u.targets {
		if t.isKey(target[0].Name) {
			return invalidf("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", target[0].Name)
		}
	}
	return nil
}

// apply returns the item after the update. It reads all operands from the item as it was before
// the update.
func (u *update) apply(before item) (item, error) {
	changes, err := u.changes(before)
	if err != nil {
		return nil, err
	}
	// DynamoDB appends list elements that actions set beyond the end of the list, in the order of
	// their indexes. So the changes are sorted by index. Longer paths come first, so that no path
	// leads into an element that another action has appended.
	slices.SortStableFunc(changes, func(a, b assignment) int {
		return cmp.Or(len(b.path)-len(a.path), a.path[len(a.path)-1].Index-b.path[len(b.path)-1].Index)
	})
	after := value{kind: kindM, item: before}
	for _, change := range changes {
		if after, err = assign(after, change.path, change.value); err != nil {
			return nil, err
		}
	}
	// Indexes in paths refer to the lists before the update. So the loop above has put a hole
	// (kindNone) in place of each removed element. Removing a hole moves later elements of its
	// list, which invalidates paths through them. So the longest paths come first.
	removed := slices.DeleteFunc(changes, func(c assignment) bool { return c.value.kind != kindNone })
	slices.SortStableFunc(removed, func(a, b assignment) int { return len(b.path) - len(a.path) })
	for _, change := range removed {
		after = closeHoles(after, change.path)
	}
	return after.item, nil
}

// assignment sets the attribute at path to a value. If the value is of kindNone, assignment
// removes the attribute.
type assignment struct {
	path  expr.Path
	value value
}

// changes evaluates every action of the update, in the order of u.targets.
func (u *update) changes(before item) ([]assignment, error) {
	changes := make([]assignment, 0, len(u.targets))
	next := func(v value) { changes = append(changes, assignment{u.targets[len(changes)], v}) }
	for _, set := range u.tree.Set {
		v, err := u.evaluate(set.Value, before)
		if err != nil {
			return nil, err
		}
		next(v)
	}
	for range u.tree.Remove {
		next(value{})
	}
	for _, add := range u.tree.Add {
		v, err := added(u.scope.lookup(before, add.Path), u.scope.value(add.Value))
		if err != nil {
			return nil, err
		}
		next(v)
	}
	for _, del := range u.tree.Delete {
		v, err := deleted(u.scope.lookup(before, del.Path), u.scope.value(del.Value))
		if err != nil {
			return nil, err
		}
		next(v)
	}
	return changes, nil
}

func (u *update) evaluate(term expr.Term, it item) (value, error) {
	switch t := term.(type) {
	case expr.Path:
		v := u.scope.lookup(it, t)
		if v.kind == kindNone {
			return v, errUpdateMissing
		}
		return v, nil
	case expr.Placeholder:
		return u.scope.value(t), nil
	case expr.IfNotExists:
		if v := u.scope.lookup(it, t.Path); v.kind != kindNone {
			return v, nil
		}
		return u.evaluate(t.Default, it)
	case expr.ListAppend:
		first, second, err := u.operands(kindL, t.First, t.Second, it)
		if err != nil {
			return value{}, err
		}
		return value{kind: kindL, list: slices.Concat(first.list, second.list)}, nil
	case expr.Sum:
		left, right, err := u.operands(kindN, t.Left, t.Right, it)
		if err != nil {
			return value{}, err
		}
		sum, err := addNumbers(left.text, right.text, t.Op == "-")
		return value{kind: kindN, text: sum}, err
	}
	panic("localdynamo: an unknown term")
}

// operands evaluates two terms. It returns an error unless both values are of the given kind.
func (u *update) operands(want kind, one, two expr.Term, it item) (a, b value, err error) {
	if a, err = u.evaluate(one, it); err != nil {
		return a, b, err
	}
	if b, err = u.evaluate(two, it); err != nil {
		return a, b, err
	}
	if a.kind != want || b.kind != want {
		return a, b, errUpdateOperand
	}
	return a, b, nil
}

// added returns the result of an ADD action: the sum of two numbers, or the union of two sets.
func added(old, operand value) (value, error) {
	switch {
	case old.kind == kindNone:
		return operand, nil
	case old.kind != operand.kind:
		return value{}, errUpdateOperand
	case old.kind == kindN:
		sum, err := addNumbers(old.text, operand.text, false)
		return value{kind: kindN, text: sum}, err
	}
	union, _ := newSet(old.kind, slices.Concat(old.list, operand.list))
	return union, nil
}

// deleted returns the result of a DELETE action: the difference of two sets, or a value of
// kindNone if the difference is empty.
func deleted(old, operand value) (value, error) {
	switch old.kind {
	case kindNone:
		return value{}, nil
	case operand.kind:
	default:
		return value{}, errUpdateOperand
	}
	left := slices.DeleteFunc(slices.Clone(old.list), operand.contains)
	if len(left) == 0 {
		return value{}, nil
	}
	return value{kind: old.kind, list: left}, nil
}

// assign returns a copy of v that has the replacement at path. It returns an error if v has no
// parent of the right type for the path. For example, a.b needs a map at a, and a[0] needs a list
// at a.
func assign(v value, path expr.Path, replacement value) (value, error) {
	step := path[0]
	switch {
	case step.Name != "" && v.kind == kindM:
		if len(path) > 1 {
			var err error
			if replacement, err = assign(v.item.get(step.Name), path[1:], replacement); err != nil {
				return v, err
			}
		}
		v.item = v.item.with(step.Name, replacement)
		return v, nil
	case step.Name == "" && v.kind == kindL:
		beyond := step.Index >= len(v.list)
		switch {
		case len(path) > 1 && beyond:
			return v, errUpdatePath
		case len(path) > 1:
			var err error
			if replacement, err = assign(v.list[step.Index], path[1:], replacement); err != nil {
				return v, err
			}
		case beyond && replacement.kind == kindNone:
			return v, nil
		case beyond:
			v.list = append(slices.Clip(v.list), replacement)
			return v, nil
		}
		v.list = slices.Clone(v.list)
		v.list[step.Index] = replacement
		return v, nil
	}
	return v, errUpdatePath
}

// closeHoles removes all holes from the list that contains the element at path. It changes
// nothing if path leads to an attribute of a map.
func closeHoles(v value, path expr.Path) value {
	step := path[0]
	switch {
	case len(path) == 1 && step.Name == "":
		v.list = slices.DeleteFunc(slices.Clone(v.list), func(element value) bool { return element.kind == kindNone })
	case len(path) > 1 && step.Name != "":
		v.item = v.item.with(step.Name, closeHoles(v.item.get(step.Name), path[1:]))
	case len(path) > 1 && step.Index < len(v.list):
		v.list = slices.Clone(v.list)
		v.list[step.Index] = closeHoles(v.list[step.Index], path[1:])
	}
	return v
}
