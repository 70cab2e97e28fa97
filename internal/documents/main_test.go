package documents_test

// root is the folder of the module. Each test runs there, so paths are the same as for a
// reader of the repository. Every test changes to it by t.Chdir: Go's test cache does not
// notice a Chdir in TestMain, and would show old results although files have changed since.
const root = "../.."
