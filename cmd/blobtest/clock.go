package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/fencedlease/lease/blobtest"
)

// clockPath is no path of the protocol: no account's name has such a letter.
const clockPath = "/_clock"

// lastYear is the last that the Date header and JSON can tell.
const lastYear = 9999

// A clockHandler shows and moves the clock. GET answers {"now":"..."}; POST with the
// parameter advance, a duration such as 15s or 1m, moves it forward first. It asks for no
// signature.
type clockHandler struct{ clock *blobtest.Clock }

func (h clockHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		d, err := time.ParseDuration(r.URL.Query().Get("advance"))
		if err != nil || d < 0 || h.clock.Now().Add(d).Year() > lastYear {
			http.Error(w, "advance must be a duration such as 15s, not negative and not beyond the year 9999", http.StatusBadRequest)
			return
		}
		h.clock.Advance(d)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "the clock knows GET and POST", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct {
		Now time.Time `json:"now"`
	}{h.clock.Now()}) // a client that is gone cannot be told
}
