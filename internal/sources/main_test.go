package sources_test

// root is the folder of the module. Each test runs there, so that it shows paths as a
// reader of the tree knows them. Every test goes there with t.Chdir. Go's test cache does
// not notice a Chdir in TestMain, and would show results for files that have changed since.
const root = "../.."
