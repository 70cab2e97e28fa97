// Package ui tests the web page of the command leasehold ui in a real browser, while real
// processes contend for locks.
package ui
