// Package ui tests the web page of "leasehold ui" in a real browser, while real processes contend
// for locks.
package ui
