package localdynamo

import (
	"cmp"
	"slices"

	"github.com/leasehold-go/leasehold/localdynamo/expr"
)

// projection parses and checks a projection expression, and replaces each placeholder with the
// name that it stands for. It returns nil if the request has no projection expression.
func (e *Engine) projection(source option[string], s *scope) ([]expr.Path, error) {
	if !source.given {
		return nil, nil
	}
	parsed, err := e.projections.get(source.value)
	if err != nil {
		return nil, refusal("ProjectionExpression", err)
	}
	paths := make([]expr.Path, len(parsed))
	for i, path := range parsed {
		if paths[i], err = s.usePath(path); err != nil {
			return nil, refusal("ProjectionExpression", err)
		}
	}
	return paths, refusal("ProjectionExpression", expr.CheckOverlap(paths))
}

// project returns those parts of the item that the paths select. The selected elements of a
// list keep their order, and no gaps are left between them.
func project(it item, paths []expr.Path) item {
	return part(value{kind: kindM, item: it}, paths).item
}

// part returns those parts of v that the paths select. It returns a value of kindNone if they
// select nothing.
func part(v value, paths []expr.Path) value {
	result := value{kind: v.kind}
	switch v.kind {
	case kindM:
		for _, a := range v.item {
			if inner := rest(paths, expr.Step{Name: a.name}); len(inner) > 0 {
				a.value = whole(a.value, inner)
				if a.value.kind != kindNone {
					result.item = append(result.item, a)
				}
			}
		}
		if len(result.item) > 0 {
			return result
		}
	case kindL:
		for _, index := range indexes(paths) {
			if index >= len(v.list) {
				break
			}
			element := whole(v.list[index], rest(paths, expr.Step{Index: index}))
			if element.kind != kindNone {
				result.list = append(result.list, element)
			}
		}
		if len(result.list) > 0 {
			return result
		}
	}
	return value{}
}

// whole returns all of v if one of the paths is empty, because an empty path selects v itself.
// Otherwise it returns the parts of v that the paths select.
func whole(v value, paths []expr.Path) value {
	if slices.ContainsFunc(paths, func(p expr.Path) bool { return len(p) == 0 }) {
		return v
	}
	return part(v, paths)
}

// rest returns the remaining steps of each path that begins with step.
func rest(paths []expr.Path, step expr.Step) []expr.Path {
	var following []expr.Path
	for _, path := range paths {
		if path[0] == step {
			following = append(following, path[1:])
		}
	}
	return following
}

// indexes returns the list indexes with which the paths begin, in ascending order.
func indexes(paths []expr.Path) []int {
	var all []int
	for _, path := range paths {
		if path[0].Name == "" {
			all = append(all, path[0].Index)
		}
	}
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}
