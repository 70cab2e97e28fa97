// Package ui tests the web page of leasehold ui in a real browser, with real processes that
// contend for locks.
package ui
