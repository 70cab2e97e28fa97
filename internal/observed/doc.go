// Package observed remembers which version of each record was observed last, and since
// when. A holder is dead once its version has not changed for its lease.
//
// A pinned key is never forgotten to make room for others. Otherwise its holder would be
// observed as if for the first time, again and again, and never be found dead. The newest
// of the other keys are remembered.
//
// It can tell two versions and two grants apart, and knows nothing else of records. It
// reads no clock, and does not decide which holder is dead.
package observed
