package localdynamo

import "context"

// describeLimits implements DescribeLimits. It returns the initial quotas of an AWS
// account. The engine does not enforce them.
func (e *Engine) describeLimits(context.Context, string) ([]byte, error) {
	return encode(map[string]any{
		"AccountMaxReadCapacityUnits":  80000,
		"AccountMaxWriteCapacityUnits": 80000,
		"TableMaxReadCapacityUnits":    40000,
		"TableMaxWriteCapacityUnits":   40000,
	}), nil
}

// describeEndpoints implements DescribeEndpoints. It returns this engine as the only endpoint.
func (e *Engine) describeEndpoints(context.Context, string) ([]byte, error) {
	return encode(map[string]any{
		"Endpoints": []any{map[string]any{"Address": "localhost", "CachePeriodInMinutes": 1440}},
	}), nil
}
