package say

// terminalSession is not known on Windows.
func terminalSession(any) string { return "" }
