package expr

import (
	"strconv"
	"strings"
)

// Step is one step of a document path. It selects the attribute Name of a map or, if Name is
// empty, the element Index of a list. A Name that starts with '#' is a placeholder.
type Step struct {
	Name  string
	Index int
}

// IsPlaceholder reports whether the name of the step is a placeholder.
func (s Step) IsPlaceholder() bool { return s.Name != "" && s.Name[0] == '#' }

// Path is a document path, such as m.list[2].#name. Its first step always has a Name.
type Path []Step

// Placeholder is the placeholder of a value, with the ':', such as :v. A placeholder of a name,
// such as #n, is a Step.
type Placeholder string

// String returns the path in the form that expressions use.
func (p Path) String() string {
	var b strings.Builder
	for i, step := range p {
		switch {
		case step.Name == "":
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(step.Index))
			b.WriteByte(']')
		case i > 0:
			b.WriteByte('.')
			fallthrough
		default:
			b.WriteString(step.Name)
		}
	}
	return b.String()
}

// Steps returns the path in the form that DynamoDB uses in errors: [m, list, [2], name].
func (p Path) Steps() string {
	steps := make([]string, len(p))
	for i, step := range p {
		steps[i] = step.Name
		if step.Name == "" {
			steps[i] = "[" + strconv.Itoa(step.Index) + "]"
		}
	}
	return "[" + strings.Join(steps, ", ") + "]"
}

// Equal reports whether both paths have the same steps.
func (p Path) Equal(other Path) bool {
	if len(p) != len(other) {
		return false
	}
	for i := range p {
		if p[i] != other[i] {
			return false
		}
	}
	return true
}

// CheckOverlap returns an error if two paths are equal, or if one leads into the other's value
// (such as a.b and a). It also returns an error if two paths use one value as a map and as a list
// (such as a.b and a[0]). The paths must not contain placeholders.
func CheckOverlap(paths []Path) error {
	for i, one := range paths {
		for _, two := range paths[i+1:] {
			if word := overlap(one, two); word != "" {
				return refuse("Two document paths %s with each other; must remove or rewrite one of these paths; path one: %s, path two: %s",
					word, one.Steps(), two.Steps())
			}
		}
	}
	return nil
}

func overlap(one, two Path) string {
	for i := range min(len(one), len(two)) {
		if one[i] == two[i] {
			continue
		}
		if (one[i].Name == "") != (two[i].Name == "") {
			return "conflict"
		}
		return ""
	}
	return "overlap"
}
