// Package observed remembers which version of each record was observed last, and since
// when. A holder is dead once its version has not changed for its lease.
//
// A pinned key is never forgotten to make room for others. Otherwise the key's holder would
// repeatedly be observed as if for the first time, and would never be found dead. Of the
// other keys, the newest are remembered.
//
// The package can distinguish two versions and two grants, and knows nothing else of
// records. It reads no clock, and does not decide which holder is dead.
package observed
