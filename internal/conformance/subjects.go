package conformance

// subjects returns the groups of cases, in the order in which they run.
func subjects() []subject {
	return []subject{
		{"items", itemCases()},
		{"conditions", conditionCases()},
		{"updates", updateCases()},
		{"paths", pathCases()},
		{"arithmetic", arithmeticCases()},
		{"sets", setCases()},
		{"projections", projectionCases()},
		{"numbers", numberCases()},
		{"values", valueCases()},
		{"query", queryCases()},
		{"key conditions", keyConditionCases()},
		{"scan", scanCases()},
		{"batches", batchCases()},
		{"transactions", transactionCases()},
		{"cancellations", cancellationCases()},
		{"tables", tableCases()},
		{"ttl", ttlCases()},
		{"capacity", capacityCases()},
		{"expression errors", expressionErrorCases()},
		{"placeholder errors", placeholderErrorCases()},
		{"key errors", keyErrorCases()},
		{"limits", limitCases()},
		{"concurrency", concurrencyCases()},
	}
}

type subject struct {
	name  string
	cases []Case
}
