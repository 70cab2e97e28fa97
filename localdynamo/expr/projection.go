package expr

// ParseProjection parses a projection expression: document paths with commas
// between them.
func ParseProjection(source string) ([]Path, error) {
	return run(source, func(p *parser) []Path {
		paths := []Path{p.path()}
		for p.accept(",") {
			paths = append(paths, p.path())
		}
		return paths
	})
}
