//go:build linux

package contest

import "time"

// Results contains all measurements of a contest. The JSON form is stored in a file.
type Results struct {
	Began      time.Time     `json:"began"`
	Took       time.Duration `json:"took"`
	Engine     string        `json:"engine"`
	Distance   time.Duration `json:"distance"` // network delay that was added to each round trip
	Rounds     int           `json:"rounds"`   // number of rounds that the user requested
	Machine    Machine       `json:"machine"`
	Contenders []Described   `json:"contenders"`
	Runs       []Run         `json:"runs"`
	Absent     []Absence     `json:"absent"`
}

// Described is the description of a contender in the results.
type Described struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	How     string `json:"how"`
}

// Run is the result of one run of a scenario by one contender.
type Run struct {
	Round     int                `json:"round"`
	Scenario  string             `json:"scenario"`
	Contender string             `json:"contender"`
	RoundTrip float64            `json:"roundTrip"` // median duration of a plain PutItem request during this run, in ms
	Others    float64            `json:"others"`    // share of the machine's processors that other programs used before the run
	Busy      float64            `json:"busy"`      // share of the machine's processors that was used during the run
	Tables    map[string]Figures `json:"tables"`
	Failed    string             `json:"failed,omitempty"`
}

// Figures maps the name of a figure, such as "jain", to its measured value.
type Figures map[string]float64

// Absence is the reason why a contender did not take part in a scenario.
type Absence struct {
	Scenario  string `json:"scenario"` // name of the scenario; empty if the contender took part in no scenario
	Contender string `json:"contender"`
	Reason    string `json:"reason"`
}
