// Package observed stores the last version of each record that a client has read, and the
// time when the client first read that version. A holder is dead once the version of its
// record has not changed for a lease.
//
// The number of keys that are not pinned is limited. If there are too many, the package forgets the
// oldest of them. A waiter pins the key that it polls. Otherwise, if the package forgot the key
// between two polls, the lease would count from the next poll again, and the waiter might never
// find the holder dead.
//
// The package compares the versions and the grants of records, and no other fields. It
// reads no clock. It does not decide which holders are dead.
package observed
