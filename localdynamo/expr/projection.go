package expr

// ParseProjection parses a projection expression: document paths separated by
// commas.
func ParseProjection(source string) ([]Path, error) {
	return run(source, func(p *parser) []Path {
		paths := []Path{p.path()}
		for p.accept(",") {
			paths = append(paths, p.path())
		}
		return paths
	})
}
