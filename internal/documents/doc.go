// Package documents tests the pages that people read: every link leads somewhere, every test
// they name exists, and what they quote from the sources is there.
package documents
