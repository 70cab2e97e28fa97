// Package unsettled remembers attempts that were given up before their effect was
// known: each may have been applied, or may still be, and nobody waits for it any
// more.
//
// It knows an attempt by its version and by what it was for. It sends nothing, and
// decides nothing: its caller knows what an unsettled attempt means, and undoes it.
// It reads no clock: every call says what time it is.
//
// To ask about one attempt costs the same however many others there are.
package unsettled
