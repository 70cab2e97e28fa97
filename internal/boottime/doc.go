// Package boottime is the clock that runs on while the machine is suspended. It imports next
// to nothing: the watchdog asks it before other packages are initialized.
package boottime
