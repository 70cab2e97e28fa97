// Package observed stores the last version of each record that a client has read, and the
// time when the client first read that version. A holder is dead once the version of its
// record has not changed for a lease.
//
// The number of keys is limited, except for pinned keys. The package forgets the oldest
// keys that are not pinned. If it forgot a key that a waiter polls, the next read would count
// as the first, and the waiter might never find the holder dead. So waiters pin their keys.
//
// The package compares the versions and the grants of records, and no other fields. It
// reads no clock. It does not decide which holders are dead.
package observed
