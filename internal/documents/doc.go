// Package documents tests the project's pages: every link leads somewhere, every test that
// they name exists, and every quotation from the sources is accurate.
package documents
