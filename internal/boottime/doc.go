// Package boottime provides a clock that runs while the machine is suspended. It imports
// next to nothing: the watchdog reads the clock before other packages are initialized.
package boottime
