//go:build linux

package contest

import "time"

// Results contains all measurements in the form in which they are stored.
type Results struct {
	Began      time.Time     `json:"began"`
	Took       time.Duration `json:"took"`
	Engine     string        `json:"engine"`
	Distance   time.Duration `json:"distance"` // added to each round trip
	Rounds     int           `json:"rounds"`   // requested number of rounds
	Machine    Machine       `json:"machine"`
	Contenders []Described   `json:"contenders"`
	Runs       []Run         `json:"runs"`
	Absent     []Absence     `json:"absent"`
}

// Described describes a contender in words.
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
	RoundTrip float64            `json:"roundTrip"` // ms for a bare write, measured in this run
	Others    float64            `json:"others"`    // share of the machine's processors that other programs used before the run
	Busy      float64            `json:"busy"`      // share of the machine's processors during it
	Tables    map[string]Figures `json:"tables"`
	Failed    string             `json:"failed,omitempty"`
}

// Figures maps the names of columns to measurements.
type Figures map[string]float64

// Absence is the reason that a contender is not in a scenario.
type Absence struct {
	Scenario  string `json:"scenario"` // empty for all scenarios
	Contender string `json:"contender"`
	Reason    string `json:"reason"`
}
