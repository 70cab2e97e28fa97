package sources_test

// root is the folder of the module. Each test runs there: paths are as a reader of the tree
// has them. Every test goes there by t.Chdir. Go's test cache does not see a Chdir of
// TestMain, and would show results of files that have changed since.
const root = "../.."
