package linearize

import "github.com/fencedlease/lease"

// An effect is what a granted request does, or the Code of a refusal.
type effect struct {
	does does
	code lease.Code
}

type does uint8

const (
	refuse does = iota
	nothing
	grant  // a lease under the proposed ID, and a newer token
	start  // the duration starts again
	change // another ID, and a newer token
	free   // available
	breaks // breaking, or broken if there is nothing to wait for
	end    // broken
	forget // available, and the ID is forgotten
)

// outcomes are the published tables, by what is asked and how the ID that is presented or
// proposed relates to the one that the lease has. The columns are the states of lease.State.
var outcomes = map[string][5]effect{}

func init() {
	words := map[string]effect{
		"nothing": {does: nothing}, "grant": {does: grant}, "start": {does: start}, "change": {does: change},
		"free": {does: free}, "breaks": {does: breaks}, "end": {does: end}, "forget": {does: forget},
	}
	for _, row := range [][6]string{
		//                available      leased         expired        breaking       broken
		{"acquire same", "grant", "grant", "grant", "breaking", "grant"},
		{"acquire other", "grant", "held", "grant", "held", "grant"},
		{"renew same", "id-mismatch", "start", "start", "broken", "broken"},
		{"renew other", "id-mismatch", "id-mismatch", "id-mismatch", "id-mismatch", "id-mismatch"},
		{"change same", "not-present", "change", "not-present", "breaking", "not-present"}, // (A) to (B)
		{"change back", "not-present", "nothing", "not-present", "id-mismatch", "not-present"},
		{"change other", "not-present", "id-mismatch", "not-present", "id-mismatch", "not-present"},
		{"release same", "id-mismatch", "free", "free", "free", "free"},
		{"release other", "id-mismatch", "id-mismatch", "id-mismatch", "id-mismatch", "id-mismatch"},
		{"break", "not-present", "breaks", "end", "breaks", "nothing"},
		{"read", "nothing", "nothing", "nothing", "nothing", "nothing"},
		{"use same", "lost", "nothing", "lost", "nothing", "lost"},
		{"use other", "not-present", "id-mismatch", "not-present", "id-mismatch", "not-present"},
		{"write", "forget", "id-missing", "forget", "id-missing", "forget"},
	} {
		var cells [5]effect
		for i, word := range row[1:] {
			e, ok := words[word]
			if !ok {
				if err := e.code.UnmarshalText([]byte(word)); err != nil {
					panic(err)
				}
			}
			cells[i] = e
		}
		outcomes[row[0]] = cells
	}
}

// rowOf says which row of the table a request to a lease with that ID is in.
func rowOf(req lease.Request, id lease.ID) string {
	relation := func(given lease.ID) string {
		if given == id {
			return " same"
		}
		return " other"
	}
	switch req.Action {
	case lease.Acquire:
		return "acquire" + relation(req.Proposed)
	case lease.Change:
		if req.Proposed == id && req.ID == id {
			return "change same"
		}
		if req.Proposed == id {
			return "change back"
		}
		return "change" + relation(req.ID)
	case lease.Break:
		return "break"
	case lease.Read, lease.Write:
		if req.ID.IsZero() {
			return req.Action.String()
		}
		return "use" + relation(req.ID)
	}
	return req.Action.String() + relation(req.ID)
}
