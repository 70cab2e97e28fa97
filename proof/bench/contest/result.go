//go:build linux

package contest

import "time"

// Results contains all measurements of a contest, as they are stored in a file.
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

// Described is a contender as the results describe it.
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
	RoundTrip float64            `json:"roundTrip"` // duration of a bare write in ms, measured in this run
	Others    float64            `json:"others"`    // share of the machine's processors that other programs used before the run
	Busy      float64            `json:"busy"`      // share of the machine's processors that was used during the run
	Tables    map[string]Figures `json:"tables"`
	Failed    string             `json:"failed,omitempty"`
}

// Figures maps the names of columns to measurements.
type Figures map[string]float64

// Absence is the reason why a contender does not play a scenario.
type Absence struct {
	Scenario  string `json:"scenario"` // empty for all scenarios
	Contender string `json:"contender"`
	Reason    string `json:"reason"`
}
