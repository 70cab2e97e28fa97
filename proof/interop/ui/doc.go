// Package ui tests the page of leasehold ui in a real browser, against real processes
// that contend for real locks.
package ui
