// Package documents tests the project's Markdown pages: every link must have a target, every test
// that a page names must exist, and every quotation from the source code must be word for word.
package documents
