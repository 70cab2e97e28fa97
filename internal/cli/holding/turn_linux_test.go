package holding

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOneWaiterOfAMachineHasTheTurnOfAKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "locks.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	came := func(turn <-chan struct{}) bool {
		select {
		case <-turn:
			return true
		default:
			return false
		}
	}
	first, leaveFirst := takeTurn(file, "job")
	other, leaveOther := takeTurn(file, "another job")
	if !came(first) || !came(other) {
		t.Errorf("the first of each key has its turn: %v, %v", came(first), came(other))
	}
	leaveOther()
	second, leaveSecond := takeTurn(file, "job")
	third, leaveThird := takeTurn(file, "job")
	if came(second) || came(third) {
		t.Error("three have their turn at the same time")
	}
	leaveSecond() // it gives up before its turn
	leaveFirst()
	<-third
	fourth, leaveFourth := takeTurn(file, "job")
	if came(fourth) {
		t.Error("whoever has left passes no turn on twice")
	}
	leaveThird()
	<-fourth
	leaveFourth()
	<-second // and its file is closed
	if turn, leave := takeTurn(filepath.Join(file, "none"), "job"); turn != nil {
		t.Error("a file that is not there has a line")
	} else {
		leave()
	}
}
