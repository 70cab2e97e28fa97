package leasehold

// NameClock names the boot clock of the process that sees these files and links
// in /proc.
func NameClock(text, link func(path string) string) string { return nameClock(text, link) }
