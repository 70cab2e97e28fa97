package localdynamo

import "context"

// describeLimits is the call DescribeLimits: an AWS account's initial quotas,
// none of which the engine enforces.
func (e *Engine) describeLimits(context.Context, string) ([]byte, error) {
	return encode(map[string]any{
		"AccountMaxReadCapacityUnits":  80000,
		"AccountMaxWriteCapacityUnits": 80000,
		"TableMaxReadCapacityUnits":    40000,
		"TableMaxWriteCapacityUnits":   40000,
	}), nil
}

// describeEndpoints is the call DescribeEndpoints: there is one endpoint, and it
// is this one.
func (e *Engine) describeEndpoints(context.Context, string) ([]byte, error) {
	return encode(map[string]any{
		"Endpoints": []any{map[string]any{"Address": "localhost", "CachePeriodInMinutes": 1440}},
	}), nil
}
