package expr

import (
	"strconv"
	"strings"
)

// parser parses one expression. If the expression is invalid, a method panics with an *Error, which
// the function "run" recovers. So no method returns an error. The recursion is not deep, because
// MaxSize limits the length of an expression.
type parser struct {
	source      string
	prev, token token
	operators   int
}

// maxOperators is the maximum number of operators and functions in an expression.
const maxOperators = 300

// The parser calls the method "operator" at each operator and each function of the expression. The
// method panics with an *Error if there are more than maxOperators.
func (p *parser) operator() {
	if p.operators++; p.operators > maxOperators {
		panic(refuse("The expression contains too many operators; operator count: %d", p.operators))
	}
}

// run parses source with fn. It returns an error if fn does not consume the whole source.
func run[T any](source string, fn func(*parser) T) (result T, err error) {
	if err := checkSize(source); err != nil {
		return result, err
	}
	defer func() {
		if r := recover(); r != nil {
			refused, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			err = refused
		}
	}()
	p := &parser{source: source, token: lex(source, 0)}
	result = fn(p)
	if p.token.kind != tokenEOF {
		p.unexpected()
	}
	return result, nil
}

func (p *parser) next() token {
	p.prev = p.token
	p.token = lex(p.source, p.token.to)
	return p.prev
}

// The method "unexpected" panics with a syntax error. The error contains the current token and its
// neighbours.
func (p *parser) unexpected() {
	from, to := p.token.from, p.token.to
	if p.prev.to > 0 {
		from = p.prev.from
	}
	if p.token.kind != tokenEOF {
		to = lex(p.source, p.token.to).to
	}
	panic(refuse(`Syntax error; token: "%s", near: "%s"`, p.token.text, p.source[from:to]))
}

func (p *parser) at(symbol string) bool {
	return p.token.kind == tokenSymbol && p.token.text == symbol
}

func (p *parser) accept(symbol string) bool {
	if !p.at(symbol) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(symbol string) {
	if !p.accept(symbol) {
		p.unexpected()
	}
}

// atWord reports whether the current token is the given keyword, in upper or lower case.
func (p *parser) atWord(keyword string) bool {
	return p.token.kind == tokenName && strings.EqualFold(p.token.text, keyword)
}

func (p *parser) acceptWord(keyword string) bool {
	if !p.atWord(keyword) {
		return false
	}
	p.next()
	return true
}

// path parses a document path.
func (p *parser) path() Path {
	path := Path{p.attribute()}
	for {
		switch {
		case p.accept("."):
			path = append(path, p.attribute())
		case p.accept("["):
			if p.token.kind != tokenNumber {
				p.unexpected()
			}
			path = append(path, Step{Index: p.index()})
			p.expect("]")
		default:
			return path
		}
	}
}

func (p *parser) index() int {
	digits := p.next().text
	index, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		panic(refuse("List index is not within the allowable range; index: [%s]", digits))
	}
	return int(index)
}

func (p *parser) attribute() Step {
	if p.token.kind != tokenName && p.token.kind != tokenAlias {
		p.unexpected()
	}
	name := p.next()
	if name.kind == tokenName && Reserved(name.text) {
		panic(refuse("Attribute name is a reserved keyword; reserved keyword: %s", name.text))
	}
	return Step{Name: name.text}
}

// atCall reports whether the current token is a name and the token after it is an opening
// parenthesis.
func (p *parser) atCall() bool {
	if p.token.kind != tokenName {
		return false
	}
	after := lex(p.source, p.token.to)
	return after.kind == tokenSymbol && after.text == "("
}
