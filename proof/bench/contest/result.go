//go:build linux

package contest

import "time"

// Results are everything that was measured, as it is kept.
type Results struct {
	Began      time.Time     `json:"began"`
	Took       time.Duration `json:"took"`
	Engine     string        `json:"engine"`
	Distance   time.Duration `json:"distance"` // added to each round trip
	Rounds     int           `json:"rounds"`   // that were asked for
	Machine    Machine       `json:"machine"`
	Contenders []Described   `json:"contenders"`
	Runs       []Run         `json:"runs"`
	Absent     []Absence     `json:"absent"`
}

// Described is a contender, in words.
type Described struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	How     string `json:"how"`
}

// Run is one scenario, played once by one contender.
type Run struct {
	Round     int                `json:"round"`
	Scenario  string             `json:"scenario"`
	Contender string             `json:"contender"`
	RoundTrip float64            `json:"roundTrip"` // ms, of a bare write, measured in this run
	Others    float64            `json:"others"`    // share of the machine's processors that was in use before, by others
	Busy      float64            `json:"busy"`      // share of the machine's processors during it
	Tables    map[string]Figures `json:"tables"`
	Failed    string             `json:"failed,omitempty"`
}

// Figures are what was measured, by the name of the column.
type Figures map[string]float64

// Absence is why a contender is not in a scenario.
type Absence struct {
	Scenario  string `json:"scenario"` // "": in any
	Contender string `json:"contender"`
	Reason    string `json:"reason"`
}
