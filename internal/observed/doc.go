// Package observed remembers which version of each record was observed last, and
// since when. A holder is dead once its version has not changed for its lease.
//
// A key that is being watched is never forgotten to make room for others. Otherwise
// its holder would be observed as if for the first time, again and again, and never
// be found dead. Of the keys that nobody watches, the newest are remembered.
//
// It can tell two versions and two grants apart, and knows nothing else of records.
// It reads no clock, and does not decide who is dead. A key is what a caller watches:
// a lock, or one of several holders of a lock.
package observed
