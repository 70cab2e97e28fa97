// Package observed remembers which version of each record was observed last, and
// since when: a holder whose version has stood still for its lease is dead.
//
// What is being watched is never forgotten in favour of other keys: its holder
// would seem to have been observed just now, and to be dead only a lease later,
// for ever. Of the keys that nobody watches the newest are remembered.
//
// It knows nothing of records beyond what tells two versions and two grants
// apart, reads no clock, and does not decide who is dead. A key is whatever its
// caller watches by itself: a lock's, or one holder's of several.
package observed
