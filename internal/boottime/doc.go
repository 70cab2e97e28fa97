// Package boottime provides a clock that also runs while the machine is suspended. It
// imports almost no packages, because the watchdog process reads the clock before other
// packages are initialized.
package boottime
