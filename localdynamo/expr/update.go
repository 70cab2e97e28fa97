package expr

import "strings"

// Update is an update expression. All its actions read the item as it was before the update.
type Update struct {
	Set    []Assignment
	Remove []Path
	Add    []Operation
	Delete []Operation
}

// Assignment is one action of the section SET of an update expression.
type Assignment struct {
	Path  Path
	Value Term
}

// Operation is one action of the section ADD or DELETE of an update expression.
type Operation struct {
	Path  Path
	Value Placeholder
}

// Term is a value that a SET action can assign: a Path, a Placeholder, a Sum, an IfNotExists or
// a ListAppend.
type Term interface{ term() }

// Sum is Left + Right or Left - Right, depending on Op, which is "+" or "-".
type Sum struct {
	Op          string
	Left, Right Term
}

// IfNotExists is the value at Path, or Default if the item has no value at Path.
type IfNotExists struct {
	Path    Path
	Default Term
}

// ListAppend is list_append(First, Second): a list with the elements of First, and then those of
// Second.
type ListAppend struct{ First, Second Term }

func (Path) term()        {}
func (Placeholder) term() {}
func (Sum) term()         {}
func (IfNotExists) term() {}
func (ListAppend) term()  {}

// ParseUpdate parses an update expression.
func ParseUpdate(source string) (*Update, error) {
	return run(source, (*parser).update)
}

// Targets returns the paths that the update writes. They are in the order SET, REMOVE, ADD,
// DELETE.
func (u *Update) Targets() []Path {
	paths := make([]Path, 0, len(u.Set)+len(u.Remove)+len(u.Add)+len(u.Delete))
	for _, assignment := range u.Set {
		paths = append(paths, assignment.Path)
	}
	paths = append(paths, u.Remove...)
	for _, operation := range u.Add {
		paths = append(paths, operation.Path)
	}
	for _, operation := range u.Delete {
		paths = append(paths, operation.Path)
	}
	return paths
}

func (p *parser) update() *Update {
	update := &Update{}
	seen := map[string]bool{}
	for first := true; first || p.token.kind != tokenEOF; first = false {
		section := strings.ToUpper(p.token.text)
		if p.token.kind != tokenName {
			p.unexpected()
		}
		if seen[section] {
			panic(refuse(`The "%s" section can only be used once in an update expression;`, section))
		}
		seen[section] = true
		switch section {
		case "SET":
			update.Set = list(p, p.assignment)
		case "REMOVE":
			update.Remove = list(p, p.path)
		case "ADD":
			update.Add = list(p, p.operation)
		case "DELETE":
			update.Delete = list(p, p.operation)
		default:
			p.unexpected()
		}
	}
	return update
}

// The function "list" parses one section of an update expression: a keyword, such as SET, and a
// list of actions. Each call of the parameter "action" parses one action.
func list[T any](p *parser, action func() T) []T {
	p.next()
	actions := []T{action()}
	for p.accept(",") {
		actions = append(actions, action())
	}
	return actions
}

func (p *parser) assignment() Assignment {
	path := p.path()
	p.expect("=")
	return Assignment{path, p.sum()}
}

func (p *parser) operation() Operation {
	path := p.path()
	if p.token.kind != tokenValue {
		p.unexpected()
	}
	return Operation{path, Placeholder(p.next().text)}
}

// sum parses a term, or two terms with an operator between them. DynamoDB allows only one
// operator.
func (p *parser) sum() Term {
	left := p.term()
	if _, ok := left.(Sum); ok || !p.at("+") && !p.at("-") {
		return left
	}
	p.operator()
	op := p.next().text
	right := p.term()
	if _, ok := right.(Sum); ok {
		p.unexpected()
	}
	return Sum{op, left, right}
}

func (p *parser) term() Term {
	switch {
	case p.accept("("):
		if p.at("(") {
			panic(refuse("The expression has redundant parentheses;"))
		}
		inner := p.sum()
		p.expect(")")
		return inner
	case p.token.kind == tokenValue:
		return Placeholder(p.next().text)
	case p.atCall():
		return p.updateCall()
	default:
		return p.path()
	}
}

func (p *parser) updateCall() Term {
	p.operator()
	function := p.next().text
	p.next() // skip the opening parenthesis
	if _, ok := conditionFunctions[function]; ok {
		panic(refuse("The function is not allowed in an update expression; function: %s", function))
	}
	arity, ok := updateFunctions[function]
	if !ok {
		panic(refuse("Invalid function name; function: %s", function))
	}
	operands := []Term{p.term()}
	for p.accept(",") {
		operands = append(operands, p.term())
	}
	p.expect(")")
	checkArity(function, arity, len(operands))
	if function == "list_append" {
		return ListAppend{operands[0], operands[1]}
	}
	path, ok := operands[0].(Path)
	if !ok {
		panic(needsPath(function))
	}
	return IfNotExists{path, operands[1]}
}
