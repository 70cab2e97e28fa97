package sources_test

// root is the folder of the module. Every test changes to it with t.Chdir, so that the
// paths in its output are relative to the module. A Chdir in TestMain would not do: Go's
// test cache does not notice it, and would show results for files that have changed since.
const root = "../.."
