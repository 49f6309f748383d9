package vectors

// given contains the requests that create the state in which a scenario begins, for the ID A. The times
// count from the first request. The scenario begins at the time of the last.
var given = map[string][]string{
	"available": {},
	"leased":    {"0s acquire proposed=A duration=60s => ok leased"},
	"breaking":  {"0s acquire proposed=A duration=60s => ok leased", "0s break period=30s => ok breaking"},
	"broken":    {"0s acquire proposed=A duration=60s => ok leased", "0s break period=0s => ok broken"},
	"expired":   {"0s acquire proposed=A duration=15s => ok leased", "15s read => ok expired"},
	"infinite":  {"0s acquire proposed=A duration=infinite => ok leased"},
	"released":  {"0s acquire proposed=A duration=60s => ok leased", "0s release id=A => ok available"},
}

// States returns the names of the states in which a scenario can begin.
func States() (all []string) {
	for s := range given {
		all = append(all, s)
	}
	return all
}

// Setup returns the steps that create the state in which the scenario begins, at the time of the last step.
func (s Scenario) Setup() (steps []Step) {
	for _, text := range given[s.Given] {
		step, err := ParseStep(text)
		if err != nil {
			panic(err) // the texts are constants, and a test has parsed them
		}
		steps = append(steps, step)
	}
	return steps
}
