// Package documents tests the project's pages: every link leads somewhere, every test that
// a page names exists, and every quotation from the sources is accurate.
package documents
