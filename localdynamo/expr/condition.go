package expr

// Condition is a condition, filter or key-condition expression, or a part of one:
// And, Or, Not, Comparison, Between, In or Call.
type Condition interface{ condition() }

// And holds if both Left and Right hold.
type And struct{ Left, Right Condition }

// Or holds if Left or Right holds, or both.
type Or struct{ Left, Right Condition }

// Not is the negation of Part: it holds if Part does not hold.
type Not struct{ Part Condition }

// Comparison compares two operands. Op is one of = <> < <= > >=.
type Comparison struct {
	Op          string
	Left, Right Operand
}

// Between holds if Low <= Operand <= High.
type Between struct{ Operand, Low, High Operand }

// In holds if Operand equals an element of List.
type In struct {
	Operand Operand
	List    []Operand
}

// Call is a call of a function that returns true or false: attribute_exists,
// attribute_not_exists, attribute_type, begins_with or contains.
type Call struct {
	Function string
	Operands []Operand
}

func (And) condition()        {}
func (Or) condition()         {}
func (Not) condition()        {}
func (Comparison) condition() {}
func (Between) condition()    {}
func (In) condition()         {}
func (Call) condition()       {}

// Operand is an operand of a condition: a Path, a Placeholder or a Size.
type Operand interface{ operand() }

// Size is a call of the function size(). The operand of the call is in the field Of.
type Size struct{ Of Operand }

func (Path) operand()        {}
func (Placeholder) operand() {}
func (Size) operand()        {}

// MaxIn is the maximum number of operands in the list of an IN.
const MaxIn = 100

// ParseCondition parses a condition, filter or key-condition expression.
func ParseCondition(source string) (Condition, error) {
	return run(source, func(p *parser) Condition { return p.condition(p.or()) })
}

// node is a part of a condition after parsing: a Condition or an Operand.
type node struct {
	condition Condition
	operand   Operand
	enclosed  bool // whether the part is in parentheses
}

// condition returns the Condition in n. It reports a syntax error if n contains an Operand.
func (p *parser) condition(n node) Condition {
	if n.condition == nil {
		if _, ok := n.operand.(Size); ok {
			panic(misused("size"))
		}
		p.unexpected()
	}
	return n.condition
}

// operand returns the Operand in n. It reports a syntax error if n contains a Condition.
func (p *parser) operand(n node) Operand {
	if n.operand == nil {
		if call, ok := n.condition.(Call); ok && !n.enclosed {
			panic(misused(call.Function))
		}
		p.unexpected()
	}
	return n.operand
}

func misused(function string) *Error {
	return refuse("The function is not allowed to be used this way in an expression; function: %s", function)
}

func (p *parser) or() node {
	left := p.and()
	for p.atWord("OR") {
		condition := p.condition(left)
		p.operator()
		p.next()
		left = node{condition: Or{condition, p.condition(p.and())}}
	}
	return left
}

func (p *parser) and() node {
	left := p.not()
	for p.atWord("AND") {
		condition := p.condition(left)
		p.operator()
		p.next()
		left = node{condition: And{condition, p.condition(p.not())}}
	}
	return left
}

func (p *parser) not() node {
	if !p.acceptWord("NOT") {
		return p.comparison()
	}
	p.operator()
	return node{condition: Not{p.condition(p.not())}}
}

func (p *parser) comparison() node {
	left := p.primary()
	switch {
	case p.token.kind == tokenSymbol && isComparator(p.token.text):
		operand := p.operand(left)
		p.operator()
		op := p.next().text
		return node{condition: Comparison{op, operand, p.operand(p.primary())}}
	case p.atWord("BETWEEN"):
		operand := p.operand(left)
		p.operator()
		p.next()
		low := p.operand(p.primary())
		if !p.acceptWord("AND") {
			p.unexpected()
		}
		return node{condition: Between{operand, low, p.operand(p.primary())}}
	case p.atWord("IN"):
		operand := p.operand(left)
		p.operator()
		p.next()
		p.expect("(")
		list := p.operands()
		if len(list) > MaxIn {
			panic(refuse("The IN operator is provided with too many operands; number of operands: %d", len(list)))
		}
		return node{condition: In{operand, list}}
	}
	return left
}

func isComparator(symbol string) bool {
	switch symbol {
	case "=", "<>", "<", "<=", ">", ">=":
		return true
	}
	return false
}

func (p *parser) primary() node {
	switch {
	case p.accept("("):
		inner := p.or()
		p.expect(")")
		if inner.enclosed {
			panic(refuse("The expression has redundant parentheses;"))
		}
		inner.enclosed = true
		return inner
	case p.token.kind == tokenValue:
		return node{operand: Placeholder(p.next().text)}
	case p.atCall():
		return p.call()
	default:
		return node{operand: p.path()}
	}
}

// operands parses a list of operands, and the closing parenthesis after it.
func (p *parser) operands() []Operand {
	var list []Operand
	for {
		list = append(list, p.operand(p.primary()))
		if p.accept(")") {
			return list
		}
		p.expect(",")
	}
}

// conditionFunctions maps the name of each function of condition expressions, in lower case, to
// the function's number of operands.
var conditionFunctions = map[string]int{
	"attribute_exists":     1,
	"attribute_not_exists": 1,
	"attribute_type":       2,
	"begins_with":          2,
	"contains":             2,
	"size":                 1,
}

// updateFunctions maps the name of each function of update expressions to the function's number
// of operands.
var updateFunctions = map[string]int{
	"if_not_exists": 2,
	"list_append":   2,
}

func (p *parser) call() node {
	p.operator()
	function := p.next().text
	p.next() // skip the opening parenthesis
	if _, ok := updateFunctions[function]; ok {
		panic(refuse("The function is not allowed in a condition expression; function: %s", function))
	}
	arity, ok := conditionFunctions[function]
	if !ok {
		panic(refuse("Invalid function name; function: %s", function))
	}
	operands := p.operands()
	checkArity(function, arity, len(operands))
	switch function {
	case "size":
		return node{operand: Size{operands[0]}}
	case "attribute_exists", "attribute_not_exists":
		if _, ok := operands[0].(Path); !ok {
			panic(needsPath(function))
		}
	}
	return node{condition: Call{function, operands}}
}

func checkArity(function string, want, got int) {
	if got != want {
		panic(refuse("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", function, got))
	}
}

func needsPath(function string) *Error {
	return refuse("Operator or function requires a document path; operator or function: %s", function)
}

// Walk calls fn for each path in the condition, from left to right.
func Walk(condition Condition, fn func(Path)) {
	switch c := condition.(type) {
	case And:
		Walk(c.Left, fn)
		Walk(c.Right, fn)
	case Or:
		Walk(c.Left, fn)
		Walk(c.Right, fn)
	case Not:
		Walk(c.Part, fn)
	case Comparison:
		walkOperands(fn, c.Left, c.Right)
	case Between:
		walkOperands(fn, c.Operand, c.Low, c.High)
	case In:
		walkOperands(fn, c.Operand)
		walkOperands(fn, c.List...)
	case Call:
		walkOperands(fn, c.Operands...)
	}
}

func walkOperands(fn func(Path), operands ...Operand) {
	for _, operand := range operands {
		switch o := operand.(type) {
		case Path:
			fn(o)
		case Size:
			walkOperands(fn, o.Of)
		}
	}
}
