// Package unsettled remembers attempts that were given up before their effect
// was known: each may have landed, or may land yet, and nobody waits for it any
// more.
//
// It knows an attempt by its version and by what it was for, and neither sends
// nor decides anything: what an unsettled attempt means, and who undoes it, is
// the caller's. It reads no clock: every call says what time it is.
//
// What a question about one attempt costs does not grow with the number of the
// others.
package unsettled
