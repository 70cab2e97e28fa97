// Package documents tests the project's Markdown pages. Every link has a target, every test
// that a page names exists, and every quotation from the source code is word for word.
package documents
